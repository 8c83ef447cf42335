"""The log cannot be changed: not by the service's role, not by the owner, not through a
partition.
"""

import psycopg
import pytest

from tests.world.database import Database

LOG = (
    "batch",
    "event",
    "event_key",
    "conflict",
    "transition",
    "fanout",
    "attempt",
    "observation",
    "action",
)
CHANGES = ("UPDATE statesvc.{} SET {} = {}", "DELETE FROM statesvc.{}", "TRUNCATE statesvc.{}")


async def _tables(connection: psycopg.AsyncConnection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return every table of the log and each of its partitions, with one of its columns."""
    query = """
        SELECT c.relname, (SELECT attname FROM pg_attribute a WHERE a.attrelid = c.oid AND attnum = 1)
        FROM pg_class c WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind IN ('r', 'p')
            AND (c.relname = ANY (%s) OR (SELECT p.relname FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent
                WHERE i.inhrelid = c.oid) = ANY (%s))"""
    return await (await connection.execute(query, (list(LOG), list(LOG)))).fetchall()


@pytest.mark.parametrize(
    ("role", "refusal"),
    [("service", psycopg.errors.InsufficientPrivilege), ("owner", psycopg.DatabaseError)],
)
async def test_no_change_of_the_log_is_taken(
    database: Database, role: str, refusal: type[psycopg.Error]
) -> None:
    dsn = database.service_dsn if role == "service" else database.owner_dsn
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        tables = await _tables(connection)
        assert len(tables) > 5 * len(LOG)
        for table, column in tables:
            for change in CHANGES:
                with pytest.raises(refusal) as caught:
                    await connection.execute(change.format(table, column, column).encode())
                assert caught.value.sqlstate == ("42501" if role == "service" else "SS001"), (
                    table,
                    change,
                )


async def test_without_its_trigger_the_owner_could_change_the_log(database: Database) -> None:
    async with await psycopg.AsyncConnection.connect(
        database.owner_dsn, autocommit=True
    ) as connection:
        await connection.execute("DROP TRIGGER append_only ON statesvc.action")
        await connection.execute("DELETE FROM statesvc.action")

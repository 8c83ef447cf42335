"""Tables of the migrated schema: append only, sealed, replicated, with statistics."""

from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

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
    "sealed_batch",
    "subtree",
    "checkpoint",
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
        assert len(tables) > 4 * len(LOG)
        for table, column in tables:
            for change in CHANGES:
                with pytest.raises(refusal) as caught:
                    await connection.execute(change.format(table, column, column).encode())
                assert caught.value.sqlstate == ("42501" if role == "service" else "SS001"), (
                    table,
                    change,
                )


BATCH = (
    "INSERT INTO {} (recorded_from, recorded_to, entries, leaf_hashes, writer) VALUES ({0}, {0}, 1,"
    " sha256('x'), 'w') RETURNING batch_id"
)
PARTITIONS = """
SELECT i.inhrelid::regclass::text, substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \\((''[^'']+'')\\)')
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'statesvc.batch'::regclass"""
WAITING = "SELECT batch_id FROM statesvc.unsealed ORDER BY 1"


async def _write(connection: AsyncConnection[Any], table: str, recorded_at: str) -> int:
    row = await (
        await connection.execute(BATCH.replace("{}", table, 1).replace("{0}", recorded_at).encode())
    ).fetchone()
    assert row is not None
    batch_id: int = row[0]
    return batch_id


async def test_a_batch_of_every_partition_waits_to_be_sealed(
    database: Any, owner: AsyncConnection[Any]
) -> None:
    await database.clock.advance(90 * 24 * 3600)
    partitions = await (await owner.execute(PARTITIONS.encode())).fetchall()
    assert len(partitions) > 5
    written = [await _write(owner, table, f"{begins}::timestamptz") for table, begins in partitions]
    waiting = await (await owner.execute(WAITING)).fetchall()
    assert [batch_id for (batch_id,) in waiting] == sorted(written)


NAMELESS = """
    SELECT c.relname FROM pg_class c
    WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind IN ('r', 'p') AND c.relreplident <> 'f' AND c.relname <> 'test_clock'
        AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND (i.indisprimary OR i.indisreplident))"""
"""Tables whose rows nothing identifies."""


async def test_each_table_has_a_key_or_says_that_its_whole_row_is_one(
    owner: AsyncConnection[Any],
) -> None:
    assert await (await owner.execute(NAMELESS)).fetchall() == []
    # what the statement above would find
    await owner.execute("ALTER TABLE statesvc.shipment_touched REPLICA IDENTITY DEFAULT")
    assert await (await owner.execute(NAMELESS)).fetchall() == [("shipment_touched",)]


SAMPLED_MORE = """
SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'test_clock' AND a.attnum > 0
    AND NOT a.attisdropped AND coalesce(a.attstattarget, -1) <> CASE a.atttypid WHEN 'bytea'::regtype THEN 0 ELSE 20 END
ORDER BY 1
"""


async def _sampled_more(owner: psycopg.AsyncConnection[tuple[str]]) -> list[str]:
    return [column for (column,) in await (await owner.execute(SAMPLED_MORE)).fetchall()]


async def test_each_table_is_sampled_little_and_its_bytes_not_at_all(
    owner: AsyncConnection[Any],
) -> None:
    # a migration that makes a table asks for it: SELECT statesvc.sample_little('statesvc.name')
    assert await _sampled_more(owner) == []


async def test_new_partitions_are_sampled_little_too(owner: AsyncConnection[Any]) -> None:
    await owner.execute("UPDATE statesvc.partitioned SET steps_ahead = steps_ahead + 1")
    assert await (await owner.execute("SELECT * FROM statesvc.ensure_partitions()")).fetchall()
    assert await _sampled_more(owner) == []
    # what the tests above would find
    await owner.execute("ALTER TABLE statesvc.inbox ALTER COLUMN received_at SET STATISTICS 100")
    assert await _sampled_more(owner) == ["inbox.received_at"]

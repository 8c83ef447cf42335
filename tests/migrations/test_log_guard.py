"""The guard of the log's tables: what is not announced is refused, what is announced stands in the
log, daily work notices nothing.
"""

import shutil
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from events.entry.kinds import EntryName
from statesvc.database.log_guard import guard_script, install_guard
from statesvc.database.migrator import migrate

REFUSED = (
    "DROP TABLE statesvc.event",
    "DROP TABLE statesvc.attempt CASCADE",
    "DROP TABLE statesvc.fanout CASCADE",
    "DROP TABLE statesvc.observation",
    "DROP SCHEMA statesvc CASCADE",
    "DROP TRIGGER append_only ON statesvc.action",
    "DROP FUNCTION statesvc.refuse_change() CASCADE",
    (
        "CREATE OR REPLACE FUNCTION statesvc.refuse_change() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RETURN NULL; END'"
    ),
    (
        "CREATE OR REPLACE FUNCTION statesvc.clock() RETURNS timestamptz LANGUAGE sql AS 'SELECT"
        " now()'"
    ),
    "ALTER TABLE statesvc.event DISABLE TRIGGER append_only",
    "ALTER TABLE statesvc.{partition} DISABLE TRIGGER ALL",
    "ALTER TABLE statesvc.event DETACH PARTITION statesvc.{partition}",
    "DROP TABLE statesvc.{partition}",
    "ALTER TABLE statesvc.{partition} RENAME TO scrap",
    "ALTER TABLE statesvc.event SET SCHEMA public",
    "ALTER SCHEMA statesvc RENAME TO elsewhere",
    "ALTER TABLE statesvc.event DROP COLUMN status",
    "ALTER TABLE statesvc.event ADD COLUMN extra text DEFAULT 'x'",
    "ALTER TABLE statesvc.checkpoint ALTER COLUMN tree_size TYPE numeric",
    "ALTER TABLE statesvc.action DROP CONSTRAINT action_ordinal_check",
    "ALTER TRIGGER append_only ON statesvc.action RENAME TO nothing",
    (
        "CREATE TRIGGER quiet BEFORE INSERT ON statesvc.event FOR EACH ROW EXECUTE FUNCTION"
        " statesvc.refuse_change()"
    ),
    "CREATE RULE quiet AS ON INSERT TO statesvc.action DO INSTEAD NOTHING",
    "CREATE POLICY quiet ON statesvc.event USING (false)",
    "CREATE INDEX more ON statesvc.event (status)",
    "GRANT UPDATE ON statesvc.event TO statesvc_service",
    "GRANT DELETE ON statesvc.{partition} TO PUBLIC",
    "GRANT UPDATE (kind) ON statesvc.event TO statesvc_service",
)
ALLOWED = (
    "CREATE TABLE statesvc.mine (x int)",
    "ALTER TABLE statesvc.mine ADD COLUMN event text DEFAULT 'x'",
    "DROP TABLE statesvc.mine",
    "ALTER TABLE statesvc.shipment SET (fillfactor = 75)",
    "COMMENT ON TABLE statesvc.event IS 'what was said'",
    "REINDEX TABLE statesvc.event_key",
    "GRANT UPDATE ON statesvc.shipment TO statesvc_service",
    "ANALYZE statesvc.event",
)
PARTITION = (
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent ="
    " 'statesvc.event'::regclass LIMIT 1"
)
ACTIONS = """
    SELECT actor, target, convert_from(canonical, 'UTF8')::jsonb -> 'details' FROM statesvc.action
    WHERE verb = 'log_ddl' ORDER BY batch_id"""


@pytest.fixture(autouse=True)
async def guard(database: Any) -> None:
    await install_guard(database.superuser_dsn)


async def _partition(connection: AsyncConnection[Any]) -> str:
    row = await (await connection.execute(PARTITION.encode())).fetchone()
    assert row is not None
    name: str = row[0]
    return name


async def test_what_was_not_announced_is_refused(database: Any) -> None:
    for statement in REFUSED:
        for role in ("owner", "superuser"):
            async with await AsyncConnection.connect(
                getattr(database, f"{role}_dsn"), autocommit=True
            ) as connection:
                with pytest.raises(psycopg.Error) as caught:
                    await connection.execute(
                        statement.format(partition=await _partition(connection)).encode()
                    )
            # a function that triggers need, or a role that may not, is refused by PostgreSQL itself
            assert caught.value.sqlstate in {"SS001", "42501"}, caught.value
            if role == "superuser":
                assert caught.value.sqlstate == "SS001", caught.value


async def test_the_tables_of_all_kinds_of_entries_and_their_partitions_are_guarded(
    database: Any,
) -> None:
    names = [f"{kind}{partition}" for kind in EntryName for partition in ("", "_202603")]
    async with await AsyncConnection.connect(database.superuser_dsn) as connection:
        query = (
            "SELECT u.name FROM unnest(%s::text[]) AS u(name) WHERE NOT"
            " statesvc_guard.is_log('statesvc', u.name)"
        )
        assert await (await connection.execute(query, (names,))).fetchall() == []


async def test_other_work_goes_on(database: Any) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        for statement in ALLOWED:
            await owner.execute(statement.encode())
    await database.clock.advance(90 * 24 * 3600)
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        assert await (await owner.execute(ACTIONS.encode())).fetchall() == []
        made = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'statesvc.event'::regclass"
        assert (await (await owner.execute(made.encode())).fetchone() or (0,))[0] > 6


async def test_what_was_announced_stands_in_the_log_and_verifies(database: Any) -> None:
    async with await AsyncConnection.connect(database.owner_dsn) as owner:
        await owner.execute(
            """SELECT statesvc.announce_log_ddl(E'an index for "Zoë"\\n\\x01 and \\\\ more')"""
        )
        await owner.execute("CREATE INDEX more ON statesvc.event_key (shipment_id)")
        await owner.execute("DROP TABLE statesvc.attempt")
        await owner.commit()
        actions = await (await owner.execute(ACTIONS.encode())).fetchall()
        # the announcement ended with its transaction
        with pytest.raises(psycopg.Error, match="belongs to the log"):
            await owner.execute("ALTER TABLE statesvc.event_key RESET (autovacuum_enabled)")
    why = 'an index for "Zoë"\n\x01 and \\ more'
    assert actions[0] == (
        "database role statesvc_owner",
        "statesvc.more",
        {"command": "CREATE INDEX", "why": why},
    )
    assert actions[1][2] == {"command": "DROP TABLE", "why": why}
    assert actions[1][1].startswith("statesvc.attempt")


async def test_replica_mode_does_not_get_past_it(database: Any) -> None:
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as connection:
        await connection.execute("SET session_replication_role = replica")
        with pytest.raises(psycopg.Error, match="belongs to the log"):
            await connection.execute("DROP TABLE statesvc.event")


async def test_migrations_announce_themselves(database: Any, tmp_path: Path) -> None:
    folder = Path(
        shutil.copytree(Path(__file__).parents[2] / "migrations", tmp_path / "migrations")
    )
    (folder / "9999_more.sql").write_text("ALTER TABLE statesvc.event ADD COLUMN later text;")
    await migrate(
        database.owner_dsn,
        database.service_dsn,
        folder=folder,
        superuser_dsn=database.superuser_dsn,
    )
    async with await AsyncConnection.connect(database.owner_dsn) as owner:
        actions = await (await owner.execute(ACTIONS.encode())).fetchall()
    assert actions == [
        (
            "database role statesvc_owner",
            "statesvc.event",
            {"command": "ALTER TABLE", "why": "migration"},
        )
    ]


async def test_nothing_of_the_owners_runs_as_superuser(
    database: Any, owner: AsyncConnection[Any]
) -> None:
    # whatever the owner makes of its own functions runs with the rights of the guard's role
    await owner.execute("SELECT statesvc.announce_log_ddl('mischief')")
    await owner.execute("CREATE TABLE statesvc.seen (who text)")
    await owner.execute("GRANT INSERT ON statesvc.seen TO PUBLIC")
    async with owner.transaction():
        await owner.execute("SELECT statesvc.announce_log_ddl('mischief')")
        await owner.execute(
            "CREATE OR REPLACE FUNCTION statesvc.await_sealing() RETURNS trigger LANGUAGE"
            " plpgsql AS 'BEGIN INSERT INTO statesvc.seen VALUES (current_user); RETURN NULL;"
            " END'"
        )
    async with await AsyncConnection.connect(database.superuser_dsn) as superuser:
        await superuser.execute("SELECT statesvc.announce_log_ddl('upkeep')")
        await superuser.execute("ALTER TABLE statesvc.event_key SET (autovacuum_enabled = true)")
        await superuser.commit()
    seen = await (await owner.execute("SELECT DISTINCT who FROM statesvc.seen")).fetchall()
    assert seen == [("statesvc_guard",)]


async def test_the_script_is_what_is_run(database: Any, owner: AsyncConnection[Any]) -> None:
    assert "CREATE EVENT TRIGGER" in guard_script()
    await install_guard(database.superuser_dsn)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await owner.execute(
            "CREATE OR REPLACE FUNCTION statesvc_guard.look_at_drop() RETURNS event_trigger"
            " LANGUAGE plpgsql AS 'BEGIN END'"
        )


async def test_a_migration_may_replace_the_functions_that_the_log_rests_on(
    database: Any, owner: AsyncConnection[Any]
) -> None:
    await owner.execute("UPDATE statesvc.schema_functions SET sha256 = 'of an older text'")
    await migrate(database.owner_dsn, database.service_dsn, superuser_dsn=database.superuser_dsn)
    actions = await (await owner.execute(ACTIONS.encode())).fetchall()
    assert actions == [
        (
            "database role statesvc_owner",
            "statesvc.ensure_partitions()",
            {"command": command, "why": "migration"},
        )
        for command in ("DROP ROUTINE", "CREATE FUNCTION")
    ]

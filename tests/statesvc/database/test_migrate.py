"""Migrations: once, in order, whole, and never in the way of traffic."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog
from psycopg import AsyncConnection

from statesvc.database.migration_files import Migration, MigrationError
from statesvc.database.migrator import MigrationReport, migrate
from tests.world.waiting import until

pytestmark = pytest.mark.slow

FIRST = "CREATE TABLE statesvc.parcel (number int NOT NULL);"
HEAVIEST = (
    "CREATE FUNCTION statesvc.heaviest() RETURNS int LANGUAGE sql RETURN (SELECT max(number) FROM"
    " statesvc.parcel);\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "0001_parcel.sql").write_text(FIRST)
    return tmp_path


async def run(database: Any, folder: Path, **options: Any) -> MigrationReport:
    return await migrate(database.owner_dsn, database.service_dsn, folder=folder, **options)


async def rows(dsn: str, statement: str) -> list[Any]:
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        cursor = await connection.execute(statement)
        return await cursor.fetchall() if cursor.description else []


async def functions(database: Any) -> list[str]:
    found = await rows(
        database.owner_dsn,
        "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace ="
        " 'statesvc'::regnamespace ORDER BY 1",
    )
    return [signature.removeprefix("statesvc.") for (signature,) in found]


async def test_files_are_applied_once_and_in_order(bare_database: Any, folder: Path) -> None:
    (folder / "0002_weight.sql").write_text(
        "ALTER TABLE statesvc.parcel ADD weight int;\nINSERT INTO statesvc.parcel VALUES (1, 2);"
    )
    assert (await run(bare_database, folder)).applied == ("0001_parcel", "0002_weight")
    assert (await run(bare_database, folder)).applied == ()
    assert await rows(bare_database.owner_dsn, "SELECT number, weight FROM statesvc.parcel") == [
        (1, 2)
    ]
    assert await rows(
        bare_database.owner_dsn, "SELECT version, name FROM statesvc.schema_migrations"
    ) == [(1, "parcel"), (2, "weight")]


async def test_a_check_names_what_is_pending_and_changes_nothing(
    bare_database: Any, folder: Path
) -> None:
    assert (await run(bare_database, folder, check_only=True)).pending == ("0001_parcel",)
    assert await rows(bare_database.owner_dsn, "SELECT to_regnamespace('statesvc') IS NULL") == [
        (True,)
    ]
    await run(bare_database, folder)
    assert (await run(bare_database, folder, check_only=True)).pending == ()
    (folder / "0002_later.sql").write_text("CREATE INDEX later ON statesvc.parcel (id);")
    assert (await run(bare_database, folder, check_only=True)).pending == ("0002_later",)


async def test_a_file_that_fails_leaves_nothing_behind(bare_database: Any, folder: Path) -> None:
    (folder / "0002_half.sql").write_text("CREATE TABLE statesvc.half (); SELECT 1/0;")
    with pytest.raises(MigrationError, match="0002_half failed: division by zero"):
        await run(bare_database, folder)
    assert await rows(
        bare_database.owner_dsn,
        "SELECT version, to_regclass('statesvc.half') FROM statesvc.schema_migrations",
    ) == [(1, None)]


async def test_a_database_of_another_text_is_refused_and_told_what_to_do(
    bare_database: Any, folder: Path
) -> None:
    await run(bare_database, folder)
    (folder / "0001_parcel.sql").write_text(FIRST + "-- more")
    (folder / "0002_later.sql").write_text("CREATE TABLE statesvc.later ();")
    for check_only in (True, False):
        with pytest.raises(
            MigrationError,
            match=r"another text of 0001_parcel.*make a new database.*remove its data directory",
        ):
            await run(bare_database, folder, check_only=check_only)
    assert await rows(bare_database.owner_dsn, "SELECT to_regclass('statesvc.later') IS NULL") == [
        (True,)
    ]


async def test_a_number_below_what_was_applied_is_refused(bare_database: Any, folder: Path) -> None:
    (folder / "0003_third.sql").write_text("SELECT 3;")
    await run(bare_database, folder)
    (folder / "0002_late.sql").write_text("SELECT 2;")
    with pytest.raises(MigrationError, match="0002_late"):
        await run(bare_database, folder)


async def test_functions_are_applied_after_the_tables_and_again_when_their_file_changes(
    bare_database: Any, folder: Path
) -> None:
    (folder / "functions").mkdir()
    heaviest = folder / "functions" / "heaviest.sql"
    heaviest.write_text(HEAVIEST)
    assert (await run(bare_database, folder, check_only=True)).pending == (
        "0001_parcel",
        "functions/heaviest",
    )
    assert (await run(bare_database, folder)).applied == ("0001_parcel", "functions/heaviest")
    assert (await run(bare_database, folder)).applied == ()
    heaviest.write_text(HEAVIEST.replace("max(", "min("))
    assert (await run(bare_database, folder, check_only=True)).pending == ("functions/heaviest",)
    await rows(bare_database.owner_dsn, "INSERT INTO statesvc.parcel VALUES (1), (2)")
    assert await rows(bare_database.owner_dsn, "SELECT statesvc.heaviest()") == [(2,)]
    assert (await run(bare_database, folder)).applied == ("functions/heaviest",)
    assert await rows(bare_database.owner_dsn, "SELECT statesvc.heaviest()") == [(1,)]


async def test_a_function_that_was_renamed_or_removed_leaves_nothing_behind(
    bare_database: Any, folder: Path
) -> None:
    (folder / "functions").mkdir()
    heaviest, lightest = (
        folder / "functions" / "heaviest.sql",
        folder / "functions" / "lightest.sql",
    )
    heaviest.write_text(
        HEAVIEST
        + HEAVIEST.replace("heaviest", "second").replace("max(number)", "max(statesvc.heaviest())")
    )
    lightest.write_text(HEAVIEST.replace("heaviest", "lightest"))
    await run(bare_database, folder)
    # made by hand: nobody's
    await rows(bare_database.owner_dsn, HEAVIEST.replace("heaviest", "mine"))
    assert await functions(bare_database) == ["heaviest()", "lightest()", "mine()", "second()"]
    heaviest.write_text(
        HEAVIEST.replace("()", "(p_least bigint)").replace("RETURNS int", "RETURNS bigint")
    )
    lightest.unlink()
    assert (await run(bare_database, folder)).applied == (
        "functions/heaviest",
        "functions/lightest",
    )
    assert await functions(bare_database) == ["heaviest(bigint)", "mine()"]
    assert (await run(bare_database, folder)).applied == ()


async def test_functions_that_fail_leave_the_old_ones(bare_database: Any, folder: Path) -> None:
    (folder / "functions").mkdir()
    (folder / "functions" / "heaviest.sql").write_text(HEAVIEST)
    await run(bare_database, folder)
    (folder / "functions" / "heaviest.sql").write_text(
        "CREATE FUNCTION statesvc.first() RETURNS int RETURN 1;"
    )
    (folder / "functions" / "lightest.sql").write_text("SELECT 1/0;")
    with pytest.raises(
        MigrationError, match="functions/heaviest, functions/lightest failed: division by zero"
    ):
        await run(bare_database, folder)
    assert await functions(bare_database) == ["heaviest()"]


async def test_the_functions_of_a_later_release_are_left_alone(
    bare_database: Any, folder: Path
) -> None:
    (folder / "functions").mkdir()
    (folder / "functions" / "heaviest.sql").write_text(HEAVIEST)
    (folder / "0002_later.sql").write_text("SELECT 2;")
    await run(bare_database, folder)
    (folder / "0002_later.sql").unlink()
    (folder / "functions" / "heaviest.sql").write_text("-- of an earlier release")
    report = await run(bare_database, folder)
    assert (report.applied, report.newer) == ((), (2,))
    assert await functions(bare_database) == ["heaviest()"]


async def test_of_many_migrators_one_does_the_work(bare_database: Any, folder: Path) -> None:
    reports = await asyncio.gather(*(run(bare_database, folder) for _ in range(4)))
    assert sorted(len(report.applied) for report in reports) == [0, 0, 0, 1]


async def test_a_migrator_does_not_wait_for_ever_for_another(
    bare_database: Any, folder: Path
) -> None:
    async with await AsyncConnection.connect(bare_database.owner_dsn, autocommit=True) as other:
        await other.execute("SELECT pg_advisory_lock(hashtextextended('statesvc.migrate', 0))")
        with pytest.raises(MigrationError, match="another migration"):
            await run(bare_database, folder, lock_wait_seconds=0.1)


async def test_a_lock_that_traffic_holds_is_asked_for_again_later(
    bare_database: Any, folder: Path
) -> None:
    await run(bare_database, folder)
    (folder / "0002_weight.sql").write_text("ALTER TABLE statesvc.parcel ADD weight int;")
    async with await AsyncConnection.connect(bare_database.owner_dsn) as traffic:
        await traffic.execute("SELECT FROM statesvc.parcel")
        with structlog.testing.capture_logs() as logs:
            migration = asyncio.create_task(run(bare_database, folder))
            # a log line sets no event
            await until(lambda: any(line["event"] == "migration_waits_for_a_lock" for line in logs))
            await traffic.rollback()
            assert (await migration).applied == ("0002_weight",)


async def test_an_index_left_invalid_by_a_crash_is_built_again(
    bare_database: Any, folder: Path
) -> None:
    await run(bare_database, folder)
    build = (
        "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS parcel_number ON statesvc.parcel (number);"
    )
    (folder / "0002_index.sql").write_text(f"-- finds a number\n{build}")
    await rows(bare_database.owner_dsn, "INSERT INTO statesvc.parcel VALUES (1), (1)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        await rows(bare_database.owner_dsn, build)
    await rows(bare_database.owner_dsn, "DELETE FROM statesvc.parcel")
    assert (await run(bare_database, folder)).applied == ("0002_index",)
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'statesvc.parcel_number'::regclass"
    assert await rows(bare_database.owner_dsn, valid) == [(True,)]


async def test_an_index_is_built_without_blocking_writers(bare_database: Any, folder: Path) -> None:
    await run(bare_database, folder)
    build = "CREATE INDEX CONCURRENTLY IF NOT EXISTS parcel_number ON statesvc.parcel (number);"
    (folder / "0002_index.sql").write_text(build)
    async with await AsyncConnection.connect(bare_database.owner_dsn) as traffic:
        await traffic.execute("INSERT INTO statesvc.parcel VALUES (1)")
        migration = asyncio.create_task(run(bare_database, folder))
        waiting = (
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'"
        )
        await until(lambda: rows(bare_database.superuser_dsn, waiting))
        # it waits for the older transaction; whoever writes meanwhile does not wait for it
        impatient = f"{bare_database.owner_dsn} options='-c lock_timeout=1s'"
        await rows(impatient, "INSERT INTO statesvc.parcel VALUES (2), (3)")
        await traffic.commit()
    assert (await migration).applied == ("0002_index",)


async def test_the_service_gets_its_privileges_and_no_more(
    bare_database: Any, folder: Path
) -> None:
    (folder / "privileges.sql").write_text(
        "GRANT USAGE ON SCHEMA statesvc TO {service_role};\nGRANT SELECT ON ALL TABLES IN SCHEMA"
        " statesvc TO {service_role};"
    )
    await run(bare_database, folder)
    assert await rows(bare_database.service_dsn, "SELECT FROM statesvc.parcel") == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await rows(bare_database.service_dsn, "INSERT INTO statesvc.parcel VALUES (1)")


async def test_new_functions_are_there_with_their_privileges_or_not_at_all(
    bare_database: Any, folder: Path
) -> None:
    made = folder / "functions" / "weigh.sql"
    made.parent.mkdir()
    made.write_text("CREATE FUNCTION statesvc.weigh() RETURNS int LANGUAGE sql AS 'SELECT 1';")
    await run(bare_database, folder)
    made.write_text("CREATE FUNCTION statesvc.weigh(int) RETURNS int LANGUAGE sql AS 'SELECT 2';")
    (folder / "privileges.sql").write_text("GRANT SELECT ON statesvc.absent TO {service_role};")
    with pytest.raises(MigrationError, match="absent"):
        await run(bare_database, folder)
    assert await functions(bare_database) == ["weigh()"]


async def test_migrating_as_the_service_role_says_which_setting_is_missing(
    bare_database: Any, folder: Path
) -> None:
    with pytest.raises(MigrationError, match="STATESVC_OWNER_URL"):
        await migrate(bare_database.service_dsn, bare_database.service_dsn, folder=folder)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE INDEX CONCURRENTLY i ON s.t (x)",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON t (x)",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON s.t (x); SELECT 1",
        "SELECT 1;\nCREATE INDEX CONCURRENTLY IF NOT EXISTS i ON s.t (x)",
    ],
)
def test_a_concurrent_index_can_be_built_again_and_stands_alone_in_its_file(text: str) -> None:
    with pytest.raises(MigrationError, match="0002_index: write CREATE INDEX CONCURRENTLY IF NOT"):
        _ = Migration(2, "index", text).index

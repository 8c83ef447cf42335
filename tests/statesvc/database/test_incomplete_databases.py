"""What a copy of a database, or a hand in it, leaves out: no role starts without a partition, a
sequence or a trigger, and each fault comes with the command that repairs it.
"""

import asyncio
import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.cli.doctor.checks import check_database
from statesvc.database.copy_faults import read_copy_faults
from statesvc.database.migrator import migrate
from statesvc.database.partitions import MissingPartitionError, require_partitions
from statesvc.health.finding import fail
from tests.acceptance.processes import MASTER_KEY
from tests.world.log_builder import LogBuilder, log_builder


async def as_superuser(database: Any, *statements: str) -> list[Any]:
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as connection:
        for statement in statements:
            cursor = await connection.execute(statement.encode())
        return await cursor.fetchall() if cursor.description else []


async def faults(database: Any) -> list[str]:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        return await read_copy_faults(connection)


def statement_of(fault: str) -> str:
    *_, statement = shlex.split(fault.split("up to ")[1])
    return statement


async def test_each_sequence_belongs_to_the_column_that_it_must_be_ahead_of(database: Any) -> None:
    unowned = await as_superuser(
        database,
        "SELECT s.relname FROM pg_class s WHERE s.relkind = 'S' AND s.relnamespace ="
        " 'statesvc'::regnamespace AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = s.oid"
        " AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i'))",
    )
    assert unowned == []


async def test_a_sequence_behind_its_column_is_named_with_the_command_that_repairs_it(
    database: Any, event_log: LogBuilder, service: AsyncConnection[Any]
) -> None:
    await event_log.everything()
    assert await faults(database) == []
    (_, highest), *_ = await as_superuser(
        database,
        "SELECT setval('statesvc.batch_id_seq', 1, false), (SELECT max(batch_id) FROM"
        " statesvc.batch)",
    )
    (fault,) = await faults(database)
    assert f"statesvc.batch.batch_id has values up to {highest}" in fault
    assert fail("copied database", fault) in [each async for each in check_database(service)]
    await as_superuser(database, statement_of(fault))
    assert await faults(database) == []
    await as_superuser(database, f"ALTER SEQUENCE statesvc.batch_id_seq RESTART {highest + 1}")
    assert await faults(database) == []


EVENTS = f"statesvc.event_{datetime.now(UTC):%Y%m}"
TRIGGERS = (
    "SELECT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
    " WHERE c.relnamespace = 'statesvc'::regnamespace AND NOT t.tgisinternal AND t.tgenabled <> 'A'"
)


async def test_every_trigger_fires_in_every_session_on_partitions_to_come_too(
    database: Any,
) -> None:
    await database.clock.advance(200 * 86_400)
    assert await as_superuser(database, TRIGGERS) == []


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        ("ALTER TABLE statesvc.batch DISABLE TRIGGER USER", "await_sealing on statesvc.batch"),
        ("ALTER TABLE statesvc.event_key DISABLE TRIGGER ALL", "append_only on statesvc.event_key"),
        (
            "ALTER TABLE statesvc.inbox DISABLE TRIGGER ALL",
            "as a superuser, ALTER TABLE statesvc.inbox ENABLE TRIGGER ALL",
        ),
    ],
)
async def test_a_disabled_trigger_is_named_and_the_next_migration_enables_it(
    database: Any, harm: str, why: str
) -> None:
    await as_superuser(database, harm)
    (fault,) = await faults(database)
    assert why in fault
    assert "`statesvc migrate`" in fault
    if "as a superuser, " in fault:
        await as_superuser(database, fault.split("as a superuser, ")[1].split(", then")[0])
    await migrate(database.owner_dsn, database.service_dsn)
    assert await faults(database) == []
    assert await as_superuser(database, TRIGGERS) == []


async def test_a_role_in_replica_mode_is_named_and_its_entries_are_sealed_all_the_same(
    database: Any,
) -> None:
    async with log_builder(database) as log:
        await log.act()
        (name,) = (await log.rows("SELECT current_database()"))[0]
    harm = "ALTER ROLE statesvc_service IN DATABASE {} {} session_replication_role {}"
    await as_superuser(database, harm.format(name, "SET", "= replica"))
    (fault,) = await faults(database)
    assert "`ALTER ROLE ... IN DATABASE ... RESET session_replication_role` ends it" in fault
    async with log_builder(database) as log:
        await log.act()
        assert (await log.seal()).tree_size == 2
    await as_superuser(database, harm.format(name, "RESET", ""))
    assert await faults(database) == []


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize(
    ("role", "harm", "why"),
    [
        (
            "ingress",
            "SELECT setval('statesvc.batch_id_seq', 1, false)",
            "SELECT setval('statesvc.batch_id_seq', 1)",
        ),
        (
            "worker",
            f"ALTER TABLE statesvc.event DETACH PARTITION {EVENTS}",
            f"the table {EVENTS} is no partition of statesvc.event",
        ),
    ],
)
async def test_a_role_refuses_to_start_and_ends(
    database: Any, event_log: LogBuilder, tmp_path: Path, *, role: str, harm: str, why: str
) -> None:
    await event_log.act()
    await as_superuser(database, harm)
    environment = {
        **os.environ,
        "DATABASE_URL": database.service_dsn,
        "STATESVC_MASTER_KEY": MASTER_KEY,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "statesvc", role, "--port", "0"),
        env=environment,
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(30):
        printed, _ = await process.communicate()
    assert process.returncode == 1
    assert why.encode() in printed


async def partition(database: Any, table: str, months: int = 0) -> str:
    ((month,),) = await as_superuser(
        database,
        "SELECT to_char((statesvc.clock() AT TIME ZONE 'UTC') +"
        f" make_interval(months => {months}), 'YYYYMM')",
    )
    return f"{table}_{month}"


async def test_a_whole_database_and_one_that_slept_for_months_start(
    database: Any, service: AsyncConnection[Any]
) -> None:
    await require_partitions(service)
    await as_superuser(database, "UPDATE statesvc.test_clock SET shift = interval '200 days'")
    await require_partitions(service)
    await service.execute("SELECT 1 FROM statesvc.event")


async def test_a_dropped_partition_that_held_sealed_entries_is_named(
    database: Any, event_log: LogBuilder, service: AsyncConnection[Any]
) -> None:
    await event_log.act()
    await event_log.seal()
    name = await partition(database, "action")
    await as_superuser(database, f"DROP TABLE statesvc.{name}")
    with pytest.raises(
        MissingPartitionError,
        match=f"statesvc.{name} is missing, and sealed entries .* restore it from a backup",
    ):
        await require_partitions(service)
    await database.clock.advance(70 * 86_400)
    with pytest.raises(MissingPartitionError, match=name):
        await require_partitions(service)


async def test_a_partition_that_is_only_detached_is_named_with_what_attaches_it(
    database: Any, service: AsyncConnection[Any]
) -> None:
    name = await partition(database, "event", 1)
    await as_superuser(database, f"ALTER TABLE statesvc.event DETACH PARTITION statesvc.{name}")
    with pytest.raises(MissingPartitionError) as refused:
        await require_partitions(service)
    (missing,) = refused.value.missing
    attach = str(missing).split("as the owner, ")[1].split(", or rename")[0]
    await as_superuser(database, attach)
    await require_partitions(service)

"""A service that lacks a partition does not start: it would fail later, or read a shorter
history.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.database.partitions import MissingPartitionError, require_partitions
from tests.acceptance.processes import MASTER_KEY
from tests.world.log_builder import LogBuilder


@pytest.fixture
async def service(database: Any) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        yield connection


async def as_superuser(database: Any, *statements: str) -> None:
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as connection:
        for statement in statements:
            await connection.execute(statement.encode())


async def partition(database: Any, table: str, months: int = 0) -> str:
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as connection:
        query = (
            "SELECT to_char((statesvc.clock() AT TIME ZONE 'UTC') + make_interval(months => %s),"
            " 'YYYYMM')"
        )
        row = await (await connection.execute(query, (months,))).fetchone()
    assert row is not None
    return f"{table}_{row[0]}"


async def one_sealed_entry(log: LogBuilder) -> None:
    await log.act()
    await log.seal()


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
    await one_sealed_entry(event_log)
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


@pytest.mark.usefixtures("own_processes")
async def test_a_role_refuses_to_start_by_name_and_ends(database: Any, tmp_path: Path) -> None:
    name = await partition(database, "event")
    await as_superuser(database, f"ALTER TABLE statesvc.event DETACH PARTITION statesvc.{name}")
    environment = {
        **os.environ,
        "DATABASE_URL": database.service_dsn,
        "STATESVC_MASTER_KEY": MASTER_KEY,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "statesvc", "worker", "--port", "0"),
        env=environment,
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(30):
        printed, _ = await process.communicate()
    assert process.returncode == 1
    assert f"the table statesvc.{name} is no partition of statesvc.event".encode() in printed

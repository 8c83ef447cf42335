"""A service that lacks a partition does not start: it would fail later, or read a shorter
history.
"""

from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.database.partitions import MissingPartitionError, require_partitions
from tests.statesvc.database.test_copy_faults import as_superuser
from tests.world.log_builder import LogBuilder


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

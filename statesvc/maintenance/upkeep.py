"""The maintenance of the tables, and of due times.

Every step is idempotent and safe next to other workers doing the same, so it needs no leader.
"""

from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from statesvc.background.periodic import Periodic
from statesvc.database.pool import Pool
from statesvc.database.queries import queries
from statesvc.database.wakeups.wakeup import READY_NOW, Wakes
from statesvc.log.personal_read_entries import close_hours
from statesvc.telemetry.metrics import Telemetry

log = structlog.get_logger()

_SQL = queries("statesvc.maintenance", "upkeep")
_EVERY_SECONDS: Final = 3600.0
_AFTER_FAILURE_SECONDS: Final = 30.0
_DUE_TIMES_SECONDS: Final = 60.0
_ROWS_AT_ONCE: Final = 5000


def maintenance(pool: Pool) -> Periodic:
    """Return a job that runs at the start and then once an hour."""

    async def work() -> None:
        async with pool.connection() as connection:
            await once(connection)

    return Periodic(
        "maintenance",
        work,
        every_seconds=_EVERY_SECONDS,
        retry_seconds=_AFTER_FAILURE_SECONDS,
        jitter=0.1,
    )


async def once(connection: AsyncConnection[Any]) -> None:
    row = await (await connection.execute(_SQL["ensure_partitions"])).fetchone()
    if row is not None and row[0]:
        log.info("partitions_made", count=row[0])
    await connection.execute(_SQL["forget_workers"])
    # those of processes that are gone; a living one closes its own in time
    await close_hours(connection)
    for name in (
        "expire_receipts",
        "forget_attempts",
        "forget_dead_letters",
        "forget_notices",
        "forget_trials",
        "forget_readers",
    ):
        while (
            await connection.execute(_SQL[name], {"limit": _ROWS_AT_ONCE})
        ).rowcount == _ROWS_AT_ONCE:
            pass
    while (
        row := await (
            await connection.execute(_SQL["forget_named_streams"], {"limit": _ROWS_AT_ONCE})
        ).fetchone()
    ) and row[0]:
        pass


def inbox_due_times(pool: Pool, telemetry: Telemetry, waker: Wakes) -> Periodic:
    """Return a job that repairs due times of the inbox that are absurdly far ahead, once a minute.

    While the database's clock is ahead, new rows are due by that clock; once it is corrected, they
    would wait until that time. No rule explains such a time: it was counted from a time in the
    future, or exceeds the longest delay.
    """

    async def work() -> None:
        async with pool.connection() as connection:
            repaired = await repair_inbox(connection)
        if repaired:
            report(telemetry, "inbox", repaired)
            for channel in READY_NOW:
                waker.wake(channel)

    return Periodic(
        "due times",
        work,
        every_seconds=_DUE_TIMES_SECONDS,
        retry_seconds=_DUE_TIMES_SECONDS,
        jitter=0.1,
    )


async def repair_inbox(connection: AsyncConnection[Any]) -> int:
    """Repair due times of messages and of lanes; return how many."""
    row = await (
        await connection.execute(_SQL["repair_inbox"], {"limit": _ROWS_AT_ONCE})
    ).fetchone()
    return sum(row or ())


def report(telemetry: Telemetry, queue: str, repaired: int) -> None:
    log.error(
        "due_times_repaired",
        queue=queue,
        count=repaired,
        why="the database's clock was ahead: check its time service",
    )
    telemetry.due_times_repaired.add(repaired, {"queue": queue})


async def seconds_in_future(connection: AsyncConnection[Any]) -> float:
    """Return how far in the future the latest supposedly past time of the queues lies.

    0 where none does.
    """
    row = await (await connection.execute(_SQL["future"])).fetchone()
    return 0.0 if row is None else row[0]

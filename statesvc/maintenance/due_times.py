"""Repairs due times that are absurdly far ahead: they become due now.

While the database's clock is ahead, new rows are due by that clock; once it is corrected, they
would wait until that time. No rule explains such a time: it was counted from a time in the future,
or exceeds the longest delay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from statesvc.background.periodic import Periodic
from statesvc.database.pool import Pool
from statesvc.database.queries import queries
from statesvc.database.wakeups.wakeup import READY_NOW, Wakes
from statesvc.telemetry.metrics import Telemetry

_EVERY_SECONDS: Final = 60.0
_ROWS_AT_ONCE: Final = 5_000

_SQL = queries("statesvc.maintenance", "due_times")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRules:
    """Bounds of a notification's due time: the longest delay after each attempt, the longest of
    all, and the longest lease.
    """

    delays_seconds: Sequence[float]
    delay_seconds_max: float
    lease_seconds_max: float


def inbox_due_times(pool: Pool, telemetry: Telemetry, waker: Wakes) -> Periodic:
    """Return a job that repairs the inbox's, once a minute."""

    async def work() -> None:
        async with pool.connection() as connection:
            repaired = await repair_inbox(connection)
        if repaired:
            report(telemetry, "inbox", repaired)
            for channel in READY_NOW:
                waker.wake(channel)

    return Periodic(
        "due times", work, every_seconds=_EVERY_SECONDS, retry_seconds=_EVERY_SECONDS, jitter=0.1
    )


async def repair_inbox(connection: AsyncConnection[Any]) -> int:
    """Repair due times of messages and of lanes; return how many."""
    row = await (
        await connection.execute(_SQL["repair_inbox"], {"limit": _ROWS_AT_ONCE})
    ).fetchone()
    return sum(row or ())


async def repair_outbox(connection: AsyncConnection[Any], rules: RetryRules) -> int:
    """Repair due times of notifications and receivers; return their number."""
    parameters = {
        "limit": _ROWS_AT_ONCE,
        "delays": list(rules.delays_seconds),
        "delay_max": rules.delay_seconds_max,
        "lease_max": rules.lease_seconds_max,
    }
    row = await (await connection.execute(_SQL["repair_outbox"], parameters)).fetchone()
    return sum(row or ())


def report(telemetry: Telemetry, queue: str, repaired: int) -> None:
    _log.error(
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

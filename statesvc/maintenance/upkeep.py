"""The maintenance of the tables.

Every step is idempotent and safe next to other workers doing the same, so it needs no leader.
"""

from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from statesvc.background.periodic import Periodic
from statesvc.database.pool import Pool
from statesvc.database.queries import queries
from statesvc.log.personal_read_entries import close_hours

log = structlog.get_logger()

_SQL = queries("statesvc.maintenance", "upkeep")
_EVERY_SECONDS: Final = 3600.0
_AFTER_FAILURE_SECONDS: Final = 30.0
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

"""The upkeep loop. Every step is idempotent and safe beside other workers doing the same, so it needs no leader."""

import asyncio
import random
from typing import Any, Final

import structlog
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from statesvc.background.waiting import set_within
from statesvc.database.queries import queries

log = structlog.get_logger()

_SQL = queries("statesvc.operations", "maintenance")
_EVERY_SECONDS: Final = 3600.0
_AFTER_FAILURE_SECONDS: Final = 30.0
_ROWS_AT_ONCE: Final = 5000


class Maintenance:
    """Runs at the start and then once an hour until `stop`."""

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[Any]]) -> None:
        self._pool = pool
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends `run` after the step in progress."""
        self._stopping.set()

    async def run(self) -> None:
        """Goes on whatever the database does; a failed pass is tried again soon."""
        while not self._stopping.is_set():
            pause = _EVERY_SECONDS * random.uniform(0.9, 1.1)  # noqa: S311 - so that workers do not do it in step
            try:
                async with self._pool.connection() as connection:
                    await once(connection)
            except Exception:
                log.warning("upkeep_failed", exc_info=True)
                pause = _AFTER_FAILURE_SECONDS
            await set_within(self._stopping, pause)


async def once(connection: AsyncConnection[Any]) -> None:
    """One pass."""
    row = await (await connection.execute(_SQL["ensure_partitions"])).fetchone()
    if row is not None and row[0]:
        log.info("partitions_made", count=row[0])
    await connection.execute(_SQL["forget_workers"])
    for name in ("expire_receipts", "forget_attempts"):
        while (await connection.execute(_SQL[name], {"limit": _ROWS_AT_ONCE})).rowcount == _ROWS_AT_ONCE:
            pass

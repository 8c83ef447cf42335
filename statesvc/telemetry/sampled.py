"""Samples of the database for scrapes: renewed at most every few seconds, empty after a failure."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import psycopg
import structlog
from psycopg import AsyncConnection

from statesvc.database.pool import Connections

T = TypeVar("T")
log = structlog.get_logger()


class Sampled(Generic[T]):
    """The last reading of `read`, which may take `read_seconds`. None: it failed."""

    def __init__(
        self,
        pool: Connections,
        read: Callable[[AsyncConnection[Any]], Awaitable[T]],
        *,
        name: str,
        every_seconds: float,
        read_seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.last: T | None = None
        self._pool = pool
        self._read = read
        self._name = name
        self._every_seconds = every_seconds
        self._read_seconds = read_seconds
        self._now = now
        self._reading = asyncio.Lock()
        self._read_at = float("-inf")

    async def sample(self) -> None:
        """Read again, unless that was just done."""
        async with self._reading:
            if self._now() < self._read_at + self._every_seconds:
                return
            try:
                async with (
                    asyncio.timeout(self._read_seconds),
                    self._pool.connection() as connection,
                ):
                    self.last = await self._read(connection)
            except (psycopg.Error, TimeoutError):
                # an old value would look like a present one: a gap in the chart is true
                self.last = None
                log.warning("sample_not_read", task=self._name, exc_info=True)
            # after a failure too: a database in trouble must not be asked with every scrape
            self._read_at = self._now()

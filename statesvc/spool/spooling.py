"""A spool as ingress uses it: opened by its URL, it keeps pushes that the database does not take, probes the database
meanwhile, and drains the spool.

New pushes come first: while any arrive, the drain rests after each transaction for a multiple of
the time that it took.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from uuid import UUID

import psycopg
import structlog

from statesvc.background.waiting import cancel_fully, set_within
from statesvc.bodies.sealed_message import SealedMessage
from statesvc.database.breaker import DatabaseBreaker
from statesvc.database.pool import Connections
from statesvc.database.wakeups.wakeup import INBOX, Wakes
from statesvc.settings.service_settings import SpoolSettings
from statesvc.spool.drainer import SQL, Drainer, ServerClock
from statesvc.spool.file_spool import FileSpool
from statesvc.spool.spool import Spool, SpoolBounds, SpooledMessage, SpoolRefusedError, age_seconds
from statesvc.telemetry import gauges
from statesvc.telemetry.metrics import Telemetry

# Longest wait of a push for the database, and of a probe that closes the breaker. The rest of the
# 300 ms to an ACK is for the write to the spool.
ANSWER_SECONDS: Final = 0.25
# A stream takes up to 9 s to elect a leader; a late ACK is better than none.
_KEEP_SECONDS: Final = 10.0
_PROBE_SECONDS: Final = 0.5
_IDLE_SECONDS: Final = 30.0
# next to new pushes: what a transaction stores costs the workers several times as much as the
# drain, and an ACK waits for the same processors. Measured with two cores, p99 of the ACKs at 60/s:
# 12 ms, 18 ms with portions of 200, 7 ms without a drain
_REST: Final = 36.0
_REST_SECONDS_MAX: Final = 2.0
_POOL_SECONDS: Final = 2.0
_LAST_SECONDS: Final = 1.0
_LOGGED_SECONDS: Final = 60.0
_log = structlog.get_logger()


class Spooling:
    """Drains from `start` to `close`. `pool` stores new pushes.

    `check` judges a database that is back before the breaker closes; its own errors end the task.
    """

    def __init__(
        self,
        spool: Spool,
        *,
        clock: ServerClock,
        dsn: str,
        pool: Connections,
        waker: Wakes,
        check: Callable[[psycopg.AsyncConnection[Any]], Awaitable[None]] | None = None,
    ) -> None:
        self.spool = spool
        self._kept: Callable[[], None] = lambda: None
        self.pushes = 0
        """New pushes, counted by who makes them."""
        self._wanted = asyncio.Event()
        self.breaker = DatabaseBreaker(opened=self._wanted.set)
        self._clock = clock
        self._pool = pool
        self._waker = waker
        self._check = check
        self._drainer = Drainer(spool, clock, dsn=dsn, after_portion=self._rest)
        self._seen_pushes = 0
        self._failure: str | None = None
        self._logged_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return [] if self._task is None else [self._task]

    def observe(self, telemetry: Telemetry) -> None:
        waiting = self.spool.waiting

        def oldest() -> float:
            message_id = waiting().oldest_id
            return 0.0 if message_id is None else age_seconds(message_id)

        telemetry.ingest_spooled.add(0)
        self._kept = partial(telemetry.ingest_spooled.add, 1)
        telemetry.observe(gauges.SPOOL_MESSAGES, lambda: [(float(waiting().messages), {})])
        telemetry.observe(gauges.SPOOL_BYTES, lambda: [(float(waiting().bytes), {})])
        telemetry.observe(gauges.SPOOL_OLDEST, lambda: [(oldest(), {})])

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="spool-drain")

    async def keep(self, message: SealedMessage) -> UUID | None:
        """Keep a message; return the id under which it is durable, None where it is not known to
        be.
        """
        try:
            async with asyncio.timeout(_KEEP_SECONDS):
                message_id = await self.spool.keep(SpooledMessage(message, self._clock.now()))
        except (SpoolRefusedError, TimeoutError) as error:
            failure = str(error) or "it does not answer"
            if failure != self._failure:
                _log.warning("spool_refuses", why=failure)
            self._failure = failure
            return None
        self._failure = None
        self._kept()
        if self.breaker.is_closed:
            # the drain that the opened breaker woke may have been here before the message
            self._wanted.set()
        return message_id

    async def close(self) -> None:
        """Close; drain the rest, if the database takes it within a second."""
        for task in self.tasks:
            await cancel_fully(task)
        # a statement may have been cancelled
        await self._drainer.disconnect()
        self.spool.end()
        if self.breaker.is_closed:
            try:
                async with asyncio.timeout(_LAST_SECONDS):
                    await self._drainer.drain_all()
            except (psycopg.Error, OSError, TimeoutError):
                _log.info("spool_not_drained", exc_info=True)
            await self._drainer.disconnect()
        await self.spool.close()

    async def _run(self) -> None:
        while True:
            try:
                pause = await self._round()
            except (psycopg.Error, OSError, TimeoutError) as error:
                if time.monotonic() - self._logged_at >= _LOGGED_SECONDS:
                    self._logged_at = time.monotonic()
                    _log.warning("spool_not_drained", error=error)
                await self._drainer.disconnect()
                pause = _PROBE_SECONDS
            if pause == _IDLE_SECONDS:
                self._logged_at = float("-inf")
                await self._drainer.disconnect()
            await set_within(self._wanted, pause)
            self._wanted.clear()

    async def _round(self) -> float:
        """Probe and drain once; return the pause until the next round."""
        if not self.breaker.is_closed:
            await self._probe()
        self._seen_pushes = self.pushes
        if await self._drainer.drain_all():
            return 0
        return _IDLE_SECONDS if self.breaker.is_closed else _PROBE_SECONDS

    async def _probe(self) -> None:
        """Close the breaker if the database commits in time, for the pool as well."""
        own = await self._drainer.connected()
        seconds = await _asked(own)
        if self._check is not None:
            await self._check(own)
        if seconds <= ANSWER_SECONDS:
            async with asyncio.timeout(_POOL_SECONDS), self._pool.connection() as connection:
                seconds = await _asked(connection)
            if seconds <= ANSWER_SECONDS:
                self.breaker.close()

    async def _rest(self, seconds: float) -> bool:
        """Wake the workers, and leave the database to new pushes for a while; return False where
        the breaker is open, for the next round probes it.
        """
        self._waker.wake(INBOX)
        if self.pushes != self._seen_pushes:
            self._seen_pushes = self.pushes
            await asyncio.sleep(min(seconds * _REST, _REST_SECONDS_MAX))
        return self.breaker.is_closed


async def _asked(connection: psycopg.AsyncConnection[Any]) -> float:
    began = time.monotonic()
    await connection.execute(SQL["probe"])
    return time.monotonic() - began


def folder_of(url: str) -> Path | None:
    """Return the folder of a file spool; None: it is a stream."""
    return Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None


async def open_spool(url: str, settings: SpoolSettings) -> Spool:
    """Open the spool. Raises OSError, ValueError and ImportError."""
    bounds = SpoolBounds(
        bytes_max=settings.bytes_max,
        age_seconds_max=settings.age_seconds_max,
        keep_seconds=settings.keep,
    )
    if (folder := folder_of(url)) is not None:
        return FileSpool(folder, bounds)
    nats_spool = import_module("statesvc.spool.nats_spool")
    spool: Spool = nats_spool.NatsSpool(url, bounds)
    return spool

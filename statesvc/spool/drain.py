"""Drains a spool for as long as ingress runs, and probes the database while its breaker is open.

New pushes come first: while any arrive, it rests after each transaction for a multiple of the time
that it took.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import psycopg
import structlog

from statesvc.background.waiting import cancel_fully, set_within
from statesvc.database.pool import Connections
from statesvc.database.wakeups.wakeup import INBOX, Wakes
from statesvc.spool.drainer import SQL, Drainer, ServerClock
from statesvc.spool.spool import Spool

# Longest wait of a push for the database, and of a probe that closes the breaker. The rest of the
# 300 ms to an ACK is for the write to the spool.
ANSWER_SECONDS: Final = 0.25
PROBE_SECONDS: Final = 0.5
IDLE_SECONDS: Final = 30.0
# next to new pushes: what a transaction stores costs the workers several times as much as the
# drain, and an ACK waits for the same processors. Measured with two cores: with 2 and 0.25 s ACKs
# took 3.6 times as long, with these 1.7
_REST: Final = 12.0
_REST_SECONDS_MAX: Final = 0.6
_POOL_SECONDS: Final = 2.0
_LAST_SECONDS: Final = 1.0
_LOGGED_SECONDS: Final = 60.0

_log = structlog.get_logger()


class Breaker(Protocol):
    @property
    def is_closed(self) -> bool:
        """True while the database takes pushes."""

    def close(self) -> None:
        """Let pushes through again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainContext:
    """`pool` stores new pushes; `pushes` counts them. `held_seconds_max`: how long a message may
    stay in the spool.

    `check` judges the database before the breaker closes; its own errors end the drain.
    """

    dsn: str
    pool: Connections
    breaker: Breaker
    waker: Wakes
    pushes: Callable[[], int]
    held_seconds_max: float
    check: Callable[[psycopg.AsyncConnection[Any]], Awaitable[None]] | None = None


class Drain:
    """Drains from `start` to `close`; `wake` makes it look at once."""

    def __init__(self, spool: Spool, clock: ServerClock, context: DrainContext) -> None:
        self._clock = clock
        self._context = context
        self._drainer = Drainer(
            spool,
            clock,
            dsn=context.dsn,
            held_seconds_max=context.held_seconds_max,
            after_portion=self._rest,
        )
        self._wanted = asyncio.Event()
        self._pushes = 0
        self._was_closed = True
        self._logged_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    @property
    def task(self) -> asyncio.Task[None] | None:
        return self._task

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="spool-drain")

    def wake(self) -> None:
        self._wanted.set()

    async def close(self) -> None:
        """End after the transaction in progress; forget what is empty, if that takes no second."""
        if self._task is not None:
            await cancel_fully(self._task)
            # a statement may have been cancelled
            await self._drainer.disconnect()
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                await self._drainer.sign_off()
        except (psycopg.Error, OSError, TimeoutError):
            _log.info("spool_not_signed_off", exc_info=True)
        await self._drainer.disconnect()

    async def _run(self) -> None:
        while True:
            try:
                pause = await self._round()
            except (psycopg.Error, OSError, TimeoutError) as error:
                if time.monotonic() - self._logged_at >= _LOGGED_SECONDS:
                    self._logged_at = time.monotonic()
                    _log.warning("spool_not_drained", error=error)
                await self._drainer.disconnect()
                pause = PROBE_SECONDS
            if pause == IDLE_SECONDS:
                self._logged_at = float("-inf")
                await self._drainer.disconnect()
            await set_within(self._wanted, pause)
            self._wanted.clear()

    async def _round(self) -> float:
        """Probe and drain once; return the pause until the next round."""
        if not self._context.breaker.is_closed:
            await self._probe()
        self._was_closed, self._pushes = self._context.breaker.is_closed, self._context.pushes()
        is_left = await self._drainer.drain_all()
        is_done = self._context.breaker.is_closed and not is_left
        return IDLE_SECONDS if is_done else PROBE_SECONDS

    async def _probe(self) -> None:
        """Close the breaker if the database commits in time, for the pool as well."""
        context = self._context
        own = await self._drainer.connected()
        seconds = await self._asked(own)
        if context.check is not None:
            await context.check(own)
        if seconds <= ANSWER_SECONDS:
            async with asyncio.timeout(_POOL_SECONDS), context.pool.connection() as connection:
                seconds = await self._asked(connection)
            if seconds <= ANSWER_SECONDS:
                context.breaker.close()

    async def _asked(self, connection: psycopg.AsyncConnection[Any]) -> float:
        began, before = time.monotonic(), datetime.now(UTC)
        row = await (await connection.execute(SQL["probe"])).fetchone()
        assert row is not None  # noqa: S101 - a SELECT without FROM has one row
        self._clock.read(row[0], before=before)
        return time.monotonic() - began

    async def _rest(self, seconds: float) -> bool:
        """Wake the workers, and leave the database to new pushes for a while; return False where
        the breaker has opened.
        """
        context = self._context
        context.waker.wake(INBOX)
        if context.pushes() != self._pushes:
            self._pushes = context.pushes()
            await asyncio.sleep(min(seconds * _REST, _REST_SECONDS_MAX))
        return context.breaker.is_closed or not self._was_closed

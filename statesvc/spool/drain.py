"""Drains spools into the inbox, over a connection of its own that also probes an open breaker.

    breaker open > probe, until a commit is durable in time > close the breaker
    > of each source: lead by advisory lock > read > put and move the place, in one transaction > settle

New pushes come first: while any arrive, it rests after each transaction for a multiple of the time
that it took.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

import psycopg
import structlog

from statesvc.background.waiting import cancel_fully, set_within
from statesvc.bodies.sealed_message import put_columns, unix_ms_of
from statesvc.database.arrays import timestamps
from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.database.service_connection import ServiceConnection
from statesvc.database.sql_errors import Failure, failure
from statesvc.database.wakeups.channels import INBOX
from statesvc.database.wakeups.direct import connect_direct
from statesvc.database.wakeups.waker import Wakes
from statesvc.spool.spool import Depth, Portion, Spool, SpooledMessage, SpoolSource

ANSWER_SECONDS: Final = 0.3
"""Longest wait of a push for the database, and of a probe that closes the breaker."""
PROBE_SECONDS: Final = 0.5
IDLE_SECONDS: Final = 30.0
_REST: Final = 2.0
_REST_SECONDS_MAX: Final = 0.25
_REPORTED_SECONDS: Final = 1.0
_POOL_SECONDS: Final = 2.0
_CLEAR_MARGIN: Final = timedelta(seconds=15)
"""A message is kept within this time of its id."""
_LAST_SECONDS: Final = 1.0

_SQL = queries("statesvc.spool", "drain")
_log = structlog.get_logger()


class Breaker(Protocol):
    @property
    def is_closed(self) -> bool:
        """True while the database takes pushes."""

    def close(self) -> None:
        """Let pushes through again."""


@dataclass(slots=True)
class ServerClock:
    """The database's clock, by its difference from this machine's when it was last read."""

    offset: timedelta = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def read(self, at: datetime, *, before: datetime) -> None:
        """Note the database's time, asked for at `before`."""
        self.offset = at - (before + (datetime.now(UTC) - before) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainContext:
    """`pool` stores new pushes; `pushes` counts them. `held_seconds_max`: how long a message may stay in the spool."""

    dsn: str
    pool: Connections
    breaker: Breaker
    waker: Wakes
    pushes: Callable[[], int]
    held_seconds_max: float
    check: Callable[[psycopg.AsyncConnection[Any]], Awaitable[None]] | None = None
    """Checks the database before the breaker closes; its own errors end the drain."""


class Drain:
    """Drains from `start` to `close`; `wake` makes it look at once."""

    def __init__(self, spool: Spool, clock: ServerClock, context: DrainContext) -> None:
        self._spool = spool
        self._clock = clock
        self._context = context
        self._wanted = asyncio.Event()
        self._connection: ServiceConnection | None = None
        self._leads: set[str] = set()
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
            await self._disconnect()
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                for source in await self._spool.sources():
                    await self._drain(source, is_last=True)
        except (psycopg.Error, OSError, TimeoutError):
            _log.info("spool_not_signed_off", exc_info=True)
        await self._disconnect()

    async def _run(self) -> None:
        while True:
            try:
                pause = await self._round()
            except (psycopg.Error, OSError, TimeoutError) as error:
                _log.warning("spool_not_drained", error=error)
                await self._disconnect()
                pause = PROBE_SECONDS
            if pause == IDLE_SECONDS:
                await self._disconnect()
            await set_within(self._wanted, pause)
            self._wanted.clear()

    async def _round(self) -> float:
        """Probe and drain once; return the pause until the next round."""
        if not self._context.breaker.is_closed:
            await self._probe()
        waits = [await self._drain(source) for source in await self._spool.sources()]
        is_done = self._context.breaker.is_closed and not any(waits)
        return IDLE_SECONDS if is_done else PROBE_SECONDS

    async def _probe(self) -> None:
        """Close the breaker if the database commits in time, for the pool as well."""
        context = self._context
        own = await self._connected()
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
        row = await (await connection.execute(_SQL["probe"])).fetchone()
        assert row is not None  # noqa: S101 - a SELECT without FROM has one row
        self._clock.read(row[0], before=before)
        return time.monotonic() - began

    async def _drain(self, source: SpoolSource, *, is_last: bool = False) -> bool:
        """Drain a source; return whether messages are left."""
        connection = await self._connected()
        if not await self._leads_in(source):
            return False
        named, before = {"name": source.name}, datetime.now(UTC)
        row = await (
            await connection.execute(
                _SQL["place"], {**named, "held_seconds": self._context.held_seconds_max}
            )
        ).fetchone()
        assert row is not None  # noqa: S101 - an upsert returns its row
        place, reported_at = int(row[0]), float("-inf")
        self._clock.read(row[1], before=before)
        was_closed = self._context.breaker.is_closed
        while (portion := None if is_last else await source.read(place)) is not None:
            if time.monotonic() - reported_at >= _REPORTED_SECONDS:
                await self._report(source, await source.depth(place))
                reported_at = time.monotonic()
            began, pushes = time.monotonic(), self._context.pushes()
            if not await self._store(source, place, portion):
                return True
            place = portion.end
            await source.settle(place)
            self._context.waker.wake(INBOX)
            if was_closed and not self._context.breaker.is_closed:
                return True
            await self._rest(time.monotonic() - began, pushes)
        await source.settle(place)
        depth = await source.depth(place)
        await self._report(source, depth)
        ends = source.has_ended or (is_last and not self._spool.is_shared)
        if ends and not (depth.messages or depth.bytes or depth.set_aside):
            await connection.execute(_SQL["forget"], named)
            await self._spool.forget(source)
        return depth.messages > 0

    async def _store(self, source: SpoolSource, place: int, portion: Portion) -> bool:
        """Store a portion, and move the place; return False where somebody else moved it."""
        connection = await self._connected()
        moved = {"name": source.name, "place": place, "end": portion.end}
        try:
            async with connection.transaction():
                if (await connection.execute(_SQL["advance"], moved)).rowcount == 0:
                    return False
                await self._put(portion.messages)
        except psycopg.Error as error:
            if failure(error) not in {Failure.REFUSED_DATA, Failure.DUPLICATE}:
                raise
            async with connection.transaction():
                if (await connection.execute(_SQL["advance"], moved)).rowcount == 0:
                    return False
                for message in portion.messages:
                    await self._put_alone(source, message)
        return True

    async def _put(self, messages: Sequence[SpooledMessage]) -> None:
        columns = {
            **put_columns([one.message for one in messages]),
            "acknowledged": timestamps([one.received_at for one in messages]),
        }
        connection = await self._connected()
        await connection.execute(_SQL["put"], columns, binary=True)

    async def _put_alone(self, source: SpoolSource, message: SpooledMessage) -> None:
        connection = await self._connected()
        try:
            async with connection.transaction():
                await self._put([message])
        except psycopg.Error as error:
            if failure(error) not in {Failure.REFUSED_DATA, Failure.DUPLICATE}:
                raise
            _log.exception("spooled_message_refused", message_id=str(message.message.message_id))
            await source.set_aside(message)

    async def _rest(self, seconds: float, pushes: int) -> None:
        if self._context.pushes() != pushes:
            await asyncio.sleep(min(seconds * _REST, _REST_SECONDS_MAX))

    async def _report(self, source: SpoolSource, depth: Depth) -> None:
        oldest = datetime.now(UTC)
        if depth.oldest_id is not None:
            oldest = datetime.fromtimestamp(unix_ms_of(depth.oldest_id) / 1000, UTC)
        report = {
            "name": source.name,
            "messages": depth.messages,
            "bytes": depth.bytes,
            "set_aside": depth.set_aside,
            "oldest_at": None if depth.oldest_id is None else oldest + self._clock.offset,
            "clear_until": oldest - _CLEAR_MARGIN,
        }
        await (await self._connected()).execute(_SQL["report"], report)

    async def _leads_in(self, source: SpoolSource) -> bool:
        if source.name not in self._leads:
            connection = await self._connected()
            row = await (await connection.execute(_SQL["lead"], {"name": source.name})).fetchone()
            if row != (True,):
                return False
            self._leads.add(source.name)
        return True

    async def _connected(self) -> ServiceConnection:
        if self._connection is None or self._connection.closed:
            self._leads.clear()
            self._connection = await connect_direct(
                self._context.dsn, application_name="statesvc spool"
            )
        return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._leads.clear()
        if connection is not None:
            await connection.close()

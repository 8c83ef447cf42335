"""Stores the messages of a spool in the inbox, over a connection of its own.

lead by advisory lock > read > put and move the place, in one transaction > settle
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import psycopg
import structlog

from statesvc.bodies.sealed_message import put_columns, unix_ms_of
from statesvc.database.queries import queries, timestamps
from statesvc.database.service_connection import ServiceConnection
from statesvc.database.sql_errors import Failure, failure
from statesvc.database.wakeups.wakeup import connect_direct
from statesvc.spool.spool import Depth, Portion, Spool, SpooledMessage, SpoolSource

_REPORTED_SECONDS: Final = 1.0
# A message is kept within this time of its id.
_CLEAR_MARGIN: Final = timedelta(seconds=30)
_OF_A_ROW: Final = frozenset({Failure.REFUSED_DATA, Failure.DUPLICATE})

SQL: Final = queries("statesvc.spool", "drainer")
_log = structlog.get_logger()


@dataclass(slots=True)
class ServerClock:
    """The database's clock, by its difference from this machine's when it was last read."""

    offset: timedelta = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def read(self, at: datetime, *, before: datetime) -> None:
        """Note the database's time, asked for at `before`."""
        self.offset = at - (before + (datetime.now(UTC) - before) / 2)


class Drainer:
    """`after_portion` hears how long each transaction took; False: it stops."""

    def __init__(
        self,
        spool: Spool,
        clock: ServerClock,
        *,
        dsn: str,
        after_portion: Callable[[float], Awaitable[bool]] | None = None,
    ) -> None:
        self._spool = spool
        self._clock = clock
        self._dsn = dsn
        self._after_portion = after_portion
        self._connection: ServiceConnection | None = None
        self._leads: set[str] = set()
        self.stored = 0

    async def drain_all(self) -> bool:
        """Drain all sources of this process; return whether messages are left."""
        return any([await self.drain(source) for source in await self._spool.sources()])

    async def drain(self, source: SpoolSource) -> bool:
        """Drain a source; return whether messages are left."""
        if not await self._leads_in(source):
            return False
        place, reported_at = await self._place(source), float("-inf")
        while (portion := await source.read(place)) is not None:
            if time.monotonic() - reported_at >= _REPORTED_SECONDS:
                await self._report(source, await source.depth(place))
                reported_at = time.monotonic()
            began = time.monotonic()
            if not await self._store(source, place, portion):
                return True
            place = portion.end
            self.stored += len(portion.messages)
            await source.settle(place)
            seconds, after = time.monotonic() - began, self._after_portion
            if after is not None and not await after(seconds):
                return True
        await source.settle(place)
        depth = await source.depth(place)
        await self._report(source, depth)
        if source.has_ended and not (depth.messages or depth.bytes or depth.set_aside):
            await (await self.connected()).execute(SQL["forget"], {"name": source.name})
            await self._spool.forget(source)
        return depth.messages > 0

    async def connected(self) -> ServiceConnection:
        if self._connection is None or self._connection.closed:
            self._leads.clear()
            self._connection = await connect_direct(self._dsn, application_name="statesvc spool")
        return self._connection

    async def disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._leads.clear()
        if connection is not None:
            await connection.close()

    async def _place(self, source: SpoolSource) -> int:
        before = datetime.now(UTC)
        named = {"name": source.name, "held_seconds": self._spool.bounds.held_seconds_max}
        row = await (await (await self.connected()).execute(SQL["place"], named)).fetchone()
        assert row is not None  # noqa: S101 - an upsert returns its row
        self._clock.read(row[1], before=before)
        return int(row[0])

    async def _store(self, source: SpoolSource, place: int, portion: Portion) -> bool:
        """Store a portion, and move the place; return False where somebody else moved it."""
        connection = await self.connected()
        moved = {"name": source.name, "place": place, "end": portion.end}
        async with connection.transaction():
            if (await connection.execute(SQL["advance"], moved)).rowcount == 0:
                return False
            await self._put(source, portion.messages)
        return True

    async def _put(self, source: SpoolSource, messages: Sequence[SpooledMessage]) -> None:
        """Store messages; one that the database refuses for itself is set aside."""
        connection = await self.connected()
        columns = {
            **put_columns([one.message for one in messages]),
            "acknowledged": timestamps([one.received_at for one in messages]),
        }
        try:
            async with connection.transaction():
                await connection.execute(SQL["put"], columns, binary=True)
        except psycopg.Error as error:
            if failure(error) not in _OF_A_ROW:
                raise
            if len(messages) > 1:
                for message in messages:
                    await self._put(source, [message])
            else:
                refused = messages[0]
                _log.exception(
                    "spooled_message_refused", message_id=str(refused.message.message_id)
                )
                await source.set_aside(refused)

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
        await (await self.connected()).execute(SQL["report"], report)

    async def _leads_in(self, source: SpoolSource) -> bool:
        connection = await self.connected()
        if source.name not in self._leads:
            row = await (await connection.execute(SQL["lead"], {"name": source.name})).fetchone()
            if row != (True,):
                return False
            self._leads.add(source.name)
        return True

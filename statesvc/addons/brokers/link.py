"""One target of a broker: its connection, left open, and opened again after a loss.

Publishers that need a connection while one is being opened wait for that one. After a failure the next is opened after a pause, which
doubles and is jittered: a broker that comes back does not face all its publishers at once.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from statesvc.addons.brokers.cloud_event import CloudEvent
from statesvc.addons.brokers.connection import Connection, PublishRefusedError

PAUSE_SECONDS_MIN: Final = 0.1
PAUSE_SECONDS_MAX: Final = 3.0
CLOSE_SECONDS: Final = 2.0

Connect = Callable[[], Awaitable[Connection]]


class Link:
    """`connect` opens a connection; it may take `connect_seconds`."""

    def __init__(self, connect: Connect, *, connect_seconds: float) -> None:
        self.in_use = 0
        """Number of those that publish, or wait for a connection."""
        self._connect = connect
        self._connect_seconds = connect_seconds
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._failures = 0
        self._not_before = 0.0
        self._answered_at = float("-inf")
        self._jitter = random.Random()  # noqa: S311 - spreads reconnections, guards nothing

    @property
    def is_open(self) -> bool:
        """True if a connection is there."""
        return self._connection is not None and self._connection.is_open

    async def publish(self, event: CloudEvent) -> str:
        """Publish as the connection does, or raise as opening one does. A publisher that stops waiting gives up a silent connection."""
        self.in_use += 1
        started = _now()
        try:
            connection = await self._opened()
            try:
                stored = await connection.publish(event)
            except PublishRefusedError:
                self._answered_at = _now()
                raise
            except BaseException:
                # a connection without answers may be dead without knowing it
                if self._answered_at < started:
                    self._give_up(connection)
                raise
            self._answered_at = _now()
            return stored
        finally:
            self.in_use -= 1

    async def close(self) -> None:
        """Close the connection. The link may be used again."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._connection is not None:
            self._give_up(self._connection)
        if self._closing:
            await asyncio.wait(self._closing)

    async def _opened(self) -> Connection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(), name="broker connection")
            self._opening.add_done_callback(self._end_of_opening)
        return await asyncio.shield(self._opening)

    async def _open(self) -> Connection:
        if self._connection is not None:
            self._give_up(self._connection)
        await asyncio.sleep(self._not_before - _now())
        try:
            async with asyncio.timeout(self._connect_seconds):
                connection = await self._connect()
        except BaseException:
            pause = min(PAUSE_SECONDS_MIN * 2**self._failures, PAUSE_SECONDS_MAX)
            self._failures += pause < PAUSE_SECONDS_MAX
            self._not_before = _now() + pause * self._jitter.uniform(0.5, 1)
            raise
        self._failures = 0
        self._connection = connection
        return connection

    def _end_of_opening(self, opening: asyncio.Task[Connection]) -> None:
        self._opening = None
        if not opening.cancelled():
            # its publishers may have stopped waiting
            opening.exception()

    def _give_up(self, connection: Connection) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        closing = asyncio.create_task(_closed(connection), name="broker connection closing")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


async def _closed(connection: Connection) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await connection.close()
    except Exception:  # noqa: BLE001, S110 - it is gone either way, and its client may say so with anything
        pass


def _now() -> float:
    return asyncio.get_running_loop().time()

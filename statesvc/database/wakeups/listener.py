"""Hears wake-ups, and turns each into an `asyncio.Event`.

Nothing is lost over a reconnect: LISTEN comes first, then every event is set, so that its owner claims once and sees what was
announced meanwhile. The events are set on a loss too, so that owners notice and sweep faster.
A consumer clears its event *before* it claims, never after: a hint that comes during the claim must survive it.
"""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog
from psycopg import AsyncConnection, sql

from statesvc.background.waiting import cancel_fully
from statesvc.database.queries import queries
from statesvc.database.wakeups.direct import connect_direct, reconnect_delays
from statesvc.database.wakeups.local import LocalListener

PING_SECONDS: Final = 30.0
"""As often as the sweeps that find what a lost wake-up left: a dead connection costs one of them at most."""

_SQL = queries("statesvc.database.wakeups", "listener")
_log = structlog.get_logger()


class Listener:
    """One connection that only listens. Its pings are the sole other statement, sent while nobody waits for notifications.

    `folder`: where wake-ups of this machine come in (`local`).
    """

    def __init__(self, direct_dsn: str, channels: Sequence[str], *, ping_seconds: float = PING_SECONDS, folder: Path | None = None) -> None:
        self._dsn = direct_dsn
        self._folder = folder
        self._local_listener: LocalListener | None = None
        self._local_senders: set[str] = set()
        """Senders that are heard without the server."""
        self._events = {channel: asyncio.Event() for channel in channels}
        self._ping_seconds = ping_seconds
        self._task: asyncio.Task[None] | None = None
        self._is_up = False
        self._jitter = random.Random()  # noqa: S311 - spreads reconnects, guards nothing

    async def start(self) -> None:
        """Starts listening. Does not wait for the connection."""
        if self._task is None:
            if self._folder is not None:
                self._local_listener = LocalListener(self._folder, self._events, self._heard)
            self._task = asyncio.create_task(self._run(), name="listener")

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The listening task, so that its owner notices when it ends."""
        return self._task

    @property
    def is_up(self) -> bool:
        """Listening right now. While it is not, owners of events sweep faster."""
        return self._is_up

    def event(self, channel: str) -> asyncio.Event:
        """The event of a channel: set on each wake-up and after each connect. One consumer per channel, which clears it."""
        return self._events[channel]

    async def stop(self) -> None:
        """Ends listening. Safe to call twice, and before `start`."""
        task, self._task = self._task, None
        if self._local_listener is not None:
            self._local_listener.close()
        if task is not None:
            await cancel_fully(task)

    async def _run(self) -> None:
        delays = reconnect_delays(self._jitter)
        while True:
            try:
                connection = await connect_direct(self._dsn, application_name="statesvc listener")
                try:
                    await self._subscribe(connection)
                    delays = reconnect_delays(self._jitter)
                    await self._follow(connection)
                finally:
                    self._mark_down()
                    await connection.close()
            except (psycopg.Error, OSError) as error:
                _log.warning("listener_connection_lost", error=error)
                await asyncio.sleep(next(delays))

    async def _subscribe(self, connection: AsyncConnection[Any]) -> None:
        for channel in self._events:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        self._is_up = True
        self._set_all()

    async def _follow(self, connection: AsyncConnection[Any]) -> None:
        while True:
            async for notification in connection.notifies(timeout=self._ping_seconds):
                if notification.payload not in self._local_senders:
                    self._events[notification.channel].set()
            await connection.execute(_SQL["ping"])

    def _heard(self, channel: str, sender: str) -> None:
        self._local_senders.add(sender)
        self._events[channel].set()

    def _mark_down(self) -> None:
        if self._is_up:
            self._is_up = False
            self._set_all()

    def _set_all(self) -> None:
        for event in self._events.values():
            event.set()

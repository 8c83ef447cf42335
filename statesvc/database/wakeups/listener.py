"""Listens for wake-ups and turns each into an `asyncio.Event`; also sends this process's own.

A reconnect loses nothing: LISTEN comes first, then every event is set, so that its owner claims
once. The events are set on a loss too, so that owners notice and sweep faster. A consumer clears
its event *before* it claims, never after: a hint that comes during the claim must survive it.
"""

import asyncio
import random
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog
from psycopg import AsyncConnection, Notify, sql

from statesvc.background.waiting import cancel_fully, set_within
from statesvc.database.queries import queries
from statesvc.database.wakeups.local import LocalListener
from statesvc.database.wakeups.wakeup import (
    ONE_IS_ENOUGH,
    connect_direct,
    prepare_to_send,
    reconnect_delays,
    send_wakeups,
)

# For a dead connection that the kernel does not notice; sweeps replace its wake-ups meanwhile.
PING_SECONDS: Final = 60.0

# Time for the woken listener on the sender's machine to claim first. It follows
# `first_within_seconds`; mostly no message is left afterwards.
_SECOND_SECONDS: Final = 0.05

_SQL = queries("statesvc.database.wakeups", "listener")
_log = structlog.get_logger()


class Listener:
    """A connection that listens. Its other statements are pings and this process's wake-ups.

    `folder`: of this machine's wake-ups (`local`). `first_within_seconds`: a listener on
    another machine waits for the one that was woken at once, or the two would claim in turn.
    """

    def __init__(
        self,
        direct_dsn: str,
        channels: Sequence[str],
        *,
        ping_seconds: float = PING_SECONDS,
        folder: Path | None = None,
        first_within_seconds: float = 0.0,
    ) -> None:
        self._dsn = direct_dsn
        self._folder = folder
        self._second_seconds = first_within_seconds + _SECOND_SECONDS
        self._local_listener: LocalListener | None = None
        self._local_senders: set[str] = set()
        """Senders that are heard without the server."""
        self._events = {channel: asyncio.Event() for channel in channels}
        self._ping_seconds = ping_seconds
        self._task: asyncio.Task[None] | None = None
        self._is_up = False
        self._up = asyncio.Event()
        self._to_send: deque[tuple[Mapping[str, str], asyncio.Future[None]]] = deque()
        self._stirred = asyncio.Event()
        self._jitter = random.Random()  # noqa: S311 - spreads reconnects, guards nothing

    async def start(self) -> None:
        """Start to listen. Does not wait for the connection."""
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

    async def wait_up(self, seconds: float) -> None:
        await set_within(self._up, seconds)

    async def send(self, wakeups: Mapping[str, str]) -> None:
        """Send wake-ups, a payload by channel.

        Raises if the connection ended: they may have been sent.
        """
        # over this connection: a connection of its own for NOTIFY would be one more a process
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._to_send.append((wakeups, sent))
        self._stirred.set()
        await sent

    def event(self, channel: str) -> asyncio.Event:
        """Return the event of a channel: set on each wake-up and connect.

        A single consumer clears it.
        """
        return self._events[channel]

    def paused(self, channel: str) -> AbstractContextManager[None]:
        """Hold wake-ups of this machine back: for a consumer that is not to begin before,
        however often it is asked.
        """
        return (
            nullcontext() if self._local_listener is None else self._local_listener.paused(channel)
        )

    async def stop(self) -> None:
        """Stop listening. Safe to call twice, and before `start`."""
        # taken out first: a second `stop` while this one waits finds nothing to do
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
                    # before the close, which may take its time: owners must sweep from now on
                    self._mark_down()
                    await connection.close()
            except (psycopg.Error, OSError) as error:
                _log.warning("listener_connection_lost", error=error)
                await asyncio.sleep(next(delays))

    async def _subscribe(self, connection: AsyncConnection[Any]) -> None:
        await prepare_to_send(connection)
        # before LISTEN: a notification may come with its answer
        connection.add_notify_handler(self._hear)
        for channel in self._events:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        self._is_up = True
        self._up.set()
        # after LISTEN: what was committed before it was notified to nobody here
        self._set_all()

    async def _follow(self, connection: AsyncConnection[Any]) -> None:
        loop, descriptor = asyncio.get_running_loop(), connection.fileno()
        while True:
            # psycopg watches the socket itself while a statement is under way
            loop.add_reader(descriptor, self._stirred.set)
            try:
                stirred = bool(self._to_send) or await set_within(self._stirred, self._ping_seconds)
            finally:
                loop.remove_reader(descriptor)
            # before reading: data that arrives during it must stir again
            self._stirred.clear()
            self._read(connection)
            while self._to_send:
                await self._send_next(connection)
            if not stirred:
                await connection.execute(_SQL["ping"])

    async def _send_next(self, connection: AsyncConnection[Any]) -> None:
        wakeups, sent = self._to_send.popleft()
        # its caller was cancelled: nobody waits for this wake-up to be sent
        if sent.done():
            return
        try:
            await send_wakeups(connection, wakeups)
        except BaseException as error:
            if not sent.done():
                sent.set_exception(
                    error
                    if isinstance(error, psycopg.Error)
                    else psycopg.OperationalError("the listener stopped")
                )
            raise
        if not sent.done():
            sent.set_result(None)

    def _read(self, connection: AsyncConnection[Any]) -> None:
        """Read the available notifications. Raises OperationalError at the end."""
        server = connection.pgconn
        server.consume_input()
        while (notification := server.notifies()) is not None:
            self._hear(
                Notify(
                    notification.relname.decode(), notification.extra.decode(), notification.be_pid
                )
            )

    def _hear(self, notification: Notify) -> None:
        channel, sender = notification.channel, notification.payload
        # heard from that process directly, and earlier
        if sender in self._local_senders:
            return
        # the sender's machine has a listener that claims already: this one follows only for what is
        # left
        if sender and channel in ONE_IS_ENOUGH:
            asyncio.get_running_loop().call_later(self._second_seconds, self._events[channel].set)
        else:
            self._events[channel].set()

    def _heard(self, channel: str, sender: str) -> None:
        self._local_senders.add(sender)
        self._events[channel].set()

    def _mark_down(self) -> None:
        if self._is_up:
            self._is_up = False
            self._up.clear()
            self._set_all()

    def _set_all(self) -> None:
        for event in self._events.values():
            event.set()

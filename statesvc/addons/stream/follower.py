"""A client of the stream: its next index, and the loop that sends it the transitions from there on.

Its place is its own index alone, so it can neither miss a transition nor see it twice. Sending
waits for the client, and other clients do not. A stalled reader costs memory here: it is cut off,
and comes back by its last id.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Final

import aiohttp
import structlog
from aiohttp import web

from statesvc.addons.stream.frame_pages import FramePage, Pages
from statesvc.addons.stream.frames import PING, Frame
from statesvc.api.transition_operations import TransitionChoice
from statesvc.files.archive_errors import UnreadableArchiveError
from statesvc.log.feed import MissingEntryError

SEND_BUFFER_BYTES: Final = 128 * 1024
"""Bytes that the kernel holds for a client.

By default it takes megabytes before a stalled reader shows.
"""
PING_SECONDS: Final = 15.0
FRAMES_A_SEND: Final = 256
LAST_SECONDS: Final = 0.5
"""Time for the last frame when the stream has to end."""

_log = structlog.get_logger()


class StalledError(Exception):
    """The client read no bytes for too long and was cut off."""


class Channel:
    """A response that was not prepared yet, on the request's connection."""

    def __init__(
        self, request: web.Request, response: web.StreamResponse, *, send_seconds: float
    ) -> None:
        self._response = response
        self._send_seconds = send_seconds
        self._transport = request.transport
        self._bound_buffers()

    @property
    def is_gone(self) -> bool:
        """True if the client has hung up, as far as is known."""
        return self._transport is None or self._transport.is_closing()

    async def send(self, text: bytes) -> None:
        """Send, and return when the client has room for more.

        Raises StalledError, and OSError or aiohttp's ClientError for a closed connection.
        """
        try:
            async with asyncio.timeout(self._send_seconds):
                await self._response.write(text)
        except TimeoutError:
            self.cut()
            raise StalledError from None

    def cut(self) -> None:
        """Drop the connection with all that waits to be sent."""
        if self._transport is not None:
            self._transport.abort()

    def _bound_buffers(self) -> None:
        connection = None if self._transport is None else self._transport.get_extra_info("socket")
        # a transport without a socket, or one that was closed meanwhile
        if connection is None:
            return
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if connection.family in {socket.AF_INET, socket.AF_INET6} and hasattr(
            socket, "TCP_USER_TIMEOUT"
        ):
            # also ends one that is dead, or stalled while so little happens that nothing waits for
            # it here
            connection.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(self._send_seconds * 3000)
            )


class StreamEnd(StrEnum):
    CLOSED = "closed"
    SLOW = "slow"
    SHED = "shed"
    STOPPING = "stopping"
    REVOKED = "revoked"
    FAILED = "failed"
    FORKED = "forked"


class Follower:
    """Made on the running loop.

    `may_go_on` is asked at each ping: a revoked key ends its streams too. `count` gets the
    number of frames of each send.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        pages: Pages,
        selection: TransitionChoice,
        next_index: int,
        epoch: int,
        may_go_on: Callable[[], Awaitable[bool]],
        count: Callable[[int], None],
        ping_seconds: float = PING_SECONDS,
    ) -> None:
        self._channel = channel
        self._pages = pages
        self._selection = selection
        self._next_index = next_index
        self._epoch = epoch
        self._may_go_on = may_go_on
        self._count = count
        self._ping_seconds = ping_seconds
        self._woken = asyncio.Event()
        self._end: StreamEnd | None = None
        self._limit: asyncio.Timeout | None = None

    @property
    def is_behind(self) -> bool:
        return self._pages.is_behind(self._next_index)

    def wake(self) -> None:
        """Have it read on: the log may have grown."""
        self._woken.set()

    def end(self, why: StreamEnd) -> None:
        """End the stream within `LAST_SECONDS`, even while it waits. The first reason is kept."""
        # the first reason is kept: what ends it after that is a consequence
        if self._end is None:
            self._end = why
            self._woken.set()
            if self._limit is not None:
                self._limit.reschedule(asyncio.get_running_loop().time() + LAST_SECONDS)

    async def run(self, opening: bytes) -> StreamEnd:
        """Send `opening`, then frames, until the client has gone, or `end`."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limit = limit
                await self._channel.send(opening)
                return await self._follow()
        except TimeoutError:
            self._channel.cut()
            return self._end or StreamEnd.FAILED
        except StalledError:
            return StreamEnd.SLOW
        except (OSError, aiohttp.ClientError):
            return StreamEnd.CLOSED
        except (MissingEntryError, UnreadableArchiveError) as error:
            _log.error("stream_log_incomplete", why=str(error))
        finally:
            self._limit = None
        return StreamEnd.FAILED

    async def _follow(self) -> StreamEnd:
        loop = asyncio.get_running_loop()
        ping_at = loop.time() + self._ping_seconds
        while self._end is None:
            page = await self._next_page(until=ping_at)
            if page is not None:
                if page.epoch != self._epoch:
                    # the new log may lack entries that the client has seen
                    return StreamEnd.FORKED
                await self._send(
                    [
                        frame
                        for frame in page.frames
                        if self._selection.takes(carrier_id=frame.carrier_id, status=frame.status)
                    ]
                )
                self._next_index = page.end
            if loop.time() >= ping_at:
                # at pings, not at each frame: it asks the database, and a revoked key may go on for
                # some seconds
                if not await self._may_go_on():
                    return StreamEnd.REVOKED
                await self._channel.send(PING)
                ping_at = loop.time() + self._ping_seconds
        return self._end

    async def _next_page(self, *, until: float) -> FramePage | None:
        """Return the next page that is not empty; None: there was none until then."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                while self._end is None:
                    # before the read: a wake-up during it must lead to another one
                    self._woken.clear()
                    page = await self._pages.read(self._next_index, epoch=self._epoch)
                    if page.end > self._next_index or page.epoch != self._epoch:
                        return page
                    await self._woken.wait()
        return None

    async def _send(self, frames: Sequence[Frame]) -> None:
        for place in range(0, len(frames), FRAMES_A_SEND):
            some = frames[place : place + FRAMES_A_SEND]
            await self._channel.send(b"".join(frame.text for frame in some))
            self._count(len(some))

"""The way to one client. What it does not take in time ends it: a stalled reader holds memory here, and comes back by its last id."""

import asyncio
import socket
from typing import Final

from aiohttp import web

SEND_BUFFER_BYTES: Final = 128 * 1024
"""What the kernel holds for one client; left alone it takes megabytes before anybody notices that nobody reads."""


class StalledError(Exception):
    """The client took nothing for too long and was cut off."""


class Channel:
    """A response that was not prepared yet, on the request's connection."""

    def __init__(self, request: web.Request, response: web.StreamResponse, *, send_seconds: float) -> None:
        self._response = response
        self._send_seconds = send_seconds
        self._transport = request.transport
        self._bound_buffers()

    @property
    def is_gone(self) -> bool:
        """Whether the client has hung up, as far as is known."""
        return self._transport is None or self._transport.is_closing()

    async def send(self, text: bytes) -> None:
        """Returns when the client has room for more. Raises StalledError, and OSError or aiohttp's ClientError for one that has gone."""
        try:
            async with asyncio.timeout(self._send_seconds):
                await self._response.write(text)
        except TimeoutError:
            self.cut()
            raise StalledError from None

    def cut(self) -> None:
        """Drops the connection with all that waits to be sent."""
        if self._transport is not None:
            self._transport.abort()

    def _bound_buffers(self) -> None:
        connection = None if self._transport is None else self._transport.get_extra_info("socket")
        if connection is None:
            return
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if connection.family in {socket.AF_INET, socket.AF_INET6} and hasattr(socket, "TCP_USER_TIMEOUT"):
            # also ends one that is dead, or stalled while so little happens that nothing waits for it here
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(self._send_seconds * 3000))

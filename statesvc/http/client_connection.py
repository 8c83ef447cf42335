"""A client's connection: aiohttp's, which may move to another process of this machine between two requests.

```
between requests --bytes--> whose request? --ours--> aiohttp reads and answers it --> between requests
                                 +-- another process's: it gets the socket, with the bytes that were read
```
No request is ever passed on half read: the process that gets the socket reads the request itself, and talks to the client directly.
A client that sends its next request together with the body of the one before (pipelining) has it answered here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Recipient(Protocol):
    """The process that answers the other requests."""

    def give(self, fd: int, head: bytes, *, is_shared: bool) -> bool:
        """Sends the socket with the bytes that were read of it; False (and nothing sent) where nobody takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Which requests another process answers. `is_theirs`: by the beginning of a request; None while it is too short to say.

    `returns_idle`: a connection that carries requests of both goes to the recipient as soon as it is idle, which then sees each request
    first.
    """

    recipient: Recipient
    is_theirs: Callable[[bytes], bool | None]
    returns_idle: bool = False


class ClientConnection(web.RequestHandler):
    """One connection. `is_shared`: it has carried requests of both processes."""

    __slots__ = ("_answered", "_body", "_head", "_held", "_is_shared", "_reads_head", "_sharing")

    def __init__(
        self,
        server: web.Server,
        *,
        loop: asyncio.AbstractEventLoop,
        sharing: Sharing | None = None,
        is_shared: bool = False,
        **options: Any,  # noqa: ANN401 - aiohttp's own, which it checks
    ) -> None:
        super().__init__(server, loop=loop, **options)
        self._sharing = sharing
        self._is_shared = is_shared
        self._answered = 0
        self._body: StreamReader = EMPTY_PAYLOAD
        self._head = b""
        self._held = b""
        self._reads_head = False

    def data_received(self, data: bytes) -> None:
        """Bytes of a head, of a body, or of the next request's head before this one is answered."""
        if not data or not self._body.is_eof():
            self._feed(data)
        elif self._request_count == self._answered:
            self._take_head(data)
        elif self._sharing is None:
            self._feed(data)
        else:
            # aiohttp would answer it here, whosever it is
            self._held += data
            self._pause_transport_reading()

    def _take_head(self, data: bytes) -> None:
        if self._sharing is not None and not self._reads_head:
            self._head += data
            theirs = self._sharing.is_theirs(self._head)
            if theirs is None:
                return
            data, self._head = self._head, b""
            if theirs and self._give(self._sharing, data):
                return
        self._reads_head = True
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        count = self._request_count
        super().data_received(data)
        if self._request_count > count and self._messages:
            self._body = self._messages[-1][1]
            self._reads_head = False

    def _give(self, sharing: Sharing, head: bytes) -> bool:
        """Moves the connection; False where it must stay: nobody takes it, or its last answer is not out yet."""
        transport = self.transport
        if transport is None or self._close or self._force_close or transport.get_write_buffer_size():
            return False
        transport.pause_reading()
        if not sharing.recipient.give(transport.get_extra_info("socket").fileno(), head, is_shared=self._is_shared):
            transport.resume_reading()
            return False
        # closes our copy of the socket, not the connection
        self.force_close()
        return True

    async def _handle_request(
        self, request: web.BaseRequest, start_time: float | None, request_handler: Handler
    ) -> tuple[web.StreamResponse, bool]:
        is_open = False
        try:
            response, reset = await super()._handle_request(request, start_time, request_handler)
            is_open = not reset and bool(response.keep_alive)
            return response, reset
        finally:
            self._answered += 1
            if is_open and self._sharing is not None:
                if not self._sharing.returns_idle:
                    self._is_shared = True
                if self._held or (self._is_shared and self._sharing.returns_idle):
                    self._loop.call_soon(self._continue, self._sharing)

    def _continue(self, sharing: Sharing) -> None:
        """The answer is out: what came meanwhile is read now, and an idle connection that both share goes to where it is read first."""
        if self.transport is None or self._request_count > self._answered or not self._body.is_eof():
            return
        if self._held:
            data, self._held = self._held, b""
            self._resume_transport_reading()
            self.data_received(data)
        elif self._is_shared and sharing.returns_idle and not self._reads_head and not self._head:
            self._give(sharing, b"")

"""A client's connection: aiohttp's, which may move between two requests.

It goes to another process of this machine.

```
between requests --bytes--> whose request? --ours--> aiohttp reads, answers --> between requests
                                 +-- another process's: it gets the socket and the bytes read
```
No request is ever passed on half read: the process that gets the socket reads the request itself,
and talks to the client directly. Half a head closes the connection after a while, a connection too
many is closed at once (`ConnectionGate`): aiohttp has neither bound. A client that sends its next
request together with the body of the one before (pipelining) has it answered here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol, cast

from aiohttp import web
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from statesvc.http.connections.connection_gate import ConnectionGate
from statesvc.http.problem import Code, Problem

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def _refusal(code: Code, detail: str) -> bytes:
    """Format an answer without a request."""
    answer = Problem(code, detail, headers={"Connection": "close"}).response()
    lines = [
        f"HTTP/1.1 {answer.status} {answer.reason}",
        *(f"{name}: {value}" for name, value in answer.headers.items()),
    ]
    body = answer.body if isinstance(answer.body, bytes) else b""
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


_TOO_MANY: Final = _refusal(Code.OVERLOADED, "too many connections; try again shortly")
_HEAD_TOO_SLOW: Final = _refusal(
    Code.REQUEST_TIMEOUT, "the head of the request did not come in time"
)


def _quoting_nothing(handler: Handler) -> Handler:
    """Answer as the handler does, but to a wrong `Expect`.

    aiohttp quotes that header before any middleware.
    """

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPExpectationFailed:
            return Problem(
                Code.BAD_REQUEST, "the header Expect may say 100-continue and nothing else"
            ).response()

    return answer


class Recipient(Protocol):
    """The process that answers the other requests."""

    def give(self, fd: int, head: bytes, *, is_shared: bool) -> bool:
        """Send the socket with its read bytes; return False (and keep it) without a recipient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Requests that another process answers.

    `is_theirs`: by the beginning of a request; None while it is too short to say.

    `returns_idle`: a connection that carries requests of both goes to the recipient as soon as it
    is idle, which then sees each request first.
    """

    recipient: Recipient
    is_theirs: Callable[[bytes], bool | None]
    returns_idle: bool = False


class ClientConnection(web.RequestHandler):
    """A connection. `is_shared`: it has carried requests of both processes."""

    __slots__ = (
        "_answered",
        "_body",
        "_early",
        "_gate",
        "_head",
        "_head_timer",
        "_held",
        "_is_refused",
        "_is_shared",
        "_reads_head",
        "_share",
        "_sharing",
    )

    def __init__(
        self,
        server: web.Server,
        *,
        loop: asyncio.AbstractEventLoop,
        gate: ConnectionGate,
        sharing: Sharing | None = None,
        is_shared: bool = False,
        is_adopted: bool = False,
        **options: Any,  # noqa: ANN401 - aiohttp's own, which it checks
    ) -> None:
        super().__init__(server, loop=loop, **options)
        self._gate = gate
        self._share: str | None = None
        self._is_refused = False
        # what is read here of a connection before `begin` said what another process has read of it
        self._early: bytes | None = b"" if is_adopted else None
        self._head_timer: asyncio.TimerHandle | None = None
        self._sharing = sharing
        self._is_shared = is_shared
        self._answered = 0
        self._body: StreamReader = EMPTY_PAYLOAD
        self._head = b""
        self._held = b""
        self._reads_head = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # before aiohttp sees the connection: one too many must cost no parser and no task
        self._share = self._gate.enter(transport.get_extra_info("peername"))
        if self._share is None:
            self._is_refused = True
            refused = cast("asyncio.Transport", transport)
            refused.write(_TOO_MANY)
            refused.close()
            return
        super().connection_made(transport)
        # an adopted connection has a head under way, of which the other process has read the
        # beginning
        if self._early is None:
            self._await_head()

    def begin(self, head: bytes) -> None:
        """Continue an adopted connection. `head`: bytes that the other process has read."""
        # cleared first: `data_received` holds bytes back for as long as it is set
        early, self._early = self._early or b"", None
        if self.transport is not None and (head or early):
            self.data_received(head + early)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_awaiting_head()
        if self._share is not None:
            # None: it was refused, and took no share
            self._gate.leave(self._share)
            self._share = None
        super().connection_lost(exc)

    def keep_body(self) -> None:
        """Stop reading the body for now; the client's bytes stay in the network."""
        self._pause_transport_reading()

    def take_body(self) -> None:
        # aiohttp pauses for reasons of its own, which must have passed, too
        if not self._reading_paused and not self._buffer_paused:
            self._resume_transport_reading()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a head or body, or of the next head before this request is answered."""
        # what arrived before the close still comes, and aiohttp never heard of this connection
        if self._is_refused:
            return
        if self._early is not None:
            # adopted: the bytes that the other process has read come first, with `begin`
            self._early += data
        elif not data or not self._body.is_eof():
            # the rest of a request that is already ours
            self._feed(data)
        elif self._request_count == self._answered:
            # no answer is owed: the only state in which the connection may move
            self._take_head(data)
        elif self._sharing is None:
            self._feed(data)
        else:
            # pipelined: aiohttp would answer it here, even if the other process owns it; pausing
            # bounds the bytes held
            self._held += data
            self._pause_transport_reading()

    def _take_head(self, data: bytes) -> None:
        self._await_head()
        if self._sharing is not None and not self._reads_head:
            self._head += data
            theirs = self._sharing.is_theirs(self._head)
            # too little to tell whose request it is: nothing is fed to aiohttp, which could not
            # give it back
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
        # only here is the head known to be complete: its timer ends, and the body's end is watched
        if self._request_count > count and self._messages:
            self._body = self._messages[-1][1]
            self._reads_head = False
            self._stop_awaiting_head()

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self._loop.call_later(
                self._gate.head_seconds, self._end_awaiting_head
            )

    def _stop_awaiting_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_awaiting_head(self) -> None:
        self._head_timer = None
        self._gate.refused("head_timeout")
        # a client that said nothing at all expects no answer
        if self.transport is not None and (self._reads_head or self._head):
            self.transport.write(_HEAD_TOO_SLOW)
        self.force_close()

    def _give(self, sharing: Sharing, head: bytes) -> bool:
        """Move the connection; return False if nobody takes it, or its last answer is not out."""
        transport = self.transport
        if (
            transport is None
            or self._close
            or self._force_close
            # unsent bytes exist in this process only and would be lost
            or transport.get_write_buffer_size()
        ):
            return False
        # before the transfer: bytes read here afterwards would be missing in the other process
        transport.pause_reading()
        if not sharing.recipient.give(
            transport.get_extra_info("socket").fileno(), head, is_shared=self._is_shared
        ):
            transport.resume_reading()
            return False
        # closes our copy of the socket, not the connection
        self.force_close()
        return True

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer malformed HTTP without quoting it; count and log it as a refusal."""
        if status != HTTPStatus.BAD_REQUEST:
            return super().handle_error(request, status, exc, message)
        self._gate.refused("malformed_request")
        # a second status line inside a body would be read as a part of it
        if request.writer.output_size > 0:
            raise ConnectionResetError("an answer was begun")
        answer = Problem(
            Code.BAD_REQUEST, "this is not HTTP/1.1 as RFC 9112 has it, or its head is too large"
        ).response()
        answer.force_close()
        return answer

    async def _handle_request(
        self, request: web.BaseRequest, start_time: float | None, request_handler: Handler
    ) -> tuple[web.StreamResponse, bool]:
        is_open = False
        try:
            response, reset = await super()._handle_request(
                request, start_time, _quoting_nothing(request_handler)
            )
            is_open = not reset and bool(response.keep_alive)
            return response, reset
        finally:
            self._answered += 1
            if is_open and self._sharing is not None:
                if not self._sharing.returns_idle:
                    self._is_shared = True
                if self._held or (self._is_shared and self._sharing.returns_idle):
                    # after this call returns: aiohttp has yet to note that the answer is out
                    self._loop.call_soon(self._continue, self._sharing)

    def _continue(self, sharing: Sharing) -> None:
        """Continue after the answer: read what came meanwhile.

        An idle connection that both share goes to where it is read first.
        """
        if (
            self.transport is None
            or self._request_count > self._answered
            or not self._body.is_eof()
        ):
            return
        if self._held:
            data, self._held = self._held, b""
            self._resume_transport_reading()
            self.data_received(data)
        # between requests only: half a head cannot be taken back from aiohttp
        elif self._is_shared and sharing.returns_idle and not self._reads_head and not self._head:
            self._give(sharing, b"")

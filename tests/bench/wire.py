"""A small HTTP/1.1 client for the load: ready bytes out, status and body in.

So cheap that it hardly takes from the service.

Answers must have a Content-Length, as all of ours do.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

import orjson

Done = Callable[["Wire", int, bytes], None]
"""Called with the wire, which is free again, the status (0: the connection was lost) and the
body.
"""

_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"


class Wire(asyncio.Protocol):
    """One connection that is kept; one request at a time."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._done: Done | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is no subclass of asyncio's
        self._transport = cast("asyncio.Transport", transport)

    def send(self, request: bytes, done: Done) -> None:
        """Send a request; `done` is called once."""
        if self._transport is None or self._transport.is_closing():
            done(self, 0, b"")
            return
        self._done = done
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(_END_OF_HEAD)
        if head < 0:
            return
        lower = self._received[:head].lower()
        at = lower.find(_LENGTH) + len(_LENGTH)
        length = int(lower[at:].split(b"\r", 1)[0])
        end = head + len(_END_OF_HEAD) + length
        if len(self._received) < end:
            return
        status, body = (
            int(self._received[9:12]),
            bytes(self._received[head + len(_END_OF_HEAD) : end]),
        )
        del self._received[:end]
        self._finish(status, body)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._finish(0, b"")

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _finish(self, status: int, body: bytes) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(self, status, body)


async def connect(port: int) -> Wire:
    """Connect to the service on this machine."""
    _, wire = await asyncio.get_running_loop().create_connection(Wire, "127.0.0.1", port)
    return wire


async def ask(wire: Wire, request: bytes) -> tuple[int, bytes]:
    """Send one request, and wait for the answer."""
    answer: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
    wire.send(request, lambda _, status, body: answer.set_result((status, body)))
    return await answer


def post(path: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type:"
        f" application/octet-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def get(path: str, key: str) -> bytes:
    """Build a GET with an API key, as bytes."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n".encode()


def post_json(path: str, document: Any, key: str) -> bytes:
    """Build a POST of a JSON document with an API key, as bytes."""
    body = orjson.dumps(document)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nContent-Type:"
        f" application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body

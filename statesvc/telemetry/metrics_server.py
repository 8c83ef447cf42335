"""Serves a few small texts on its own socket, at a bounded rate.

At most `CONNECTIONS_A_SECOND` are accepted, each for one request and a few seconds; the others wait
in the kernel, where they cost nothing. So callers of this address cannot take the processor from
the process.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final

import structlog

from statesvc.background.waiting import cancel_fully

CONNECTIONS_A_SECOND: Final = 50
CONNECTIONS_MAX: Final = 16
BACKLOG: Final = 128
HEAD_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 10.0
HEAD_BYTES_MAX: Final = 8192
_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_RETRY_SECONDS: Final = 1.0

log = structlog.get_logger()


class MetricsServer:
    """`listener` is bound and non-blocking; it is closed with the server.

    `texts`: answers by path.
    """

    def __init__(
        self, listener: socket.socket, texts: Mapping[str, Callable[[], Awaitable[bytes]]]
    ) -> None:
        self._listener = listener
        self._texts = texts
        self._slots = asyncio.Semaphore(CONNECTIONS_MAX)
        self._answering: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._listener.listen(BACKLOG)
        self._task = asyncio.create_task(self._accept(), name="metrics")

    async def close(self) -> None:
        """Close all connections."""
        for task in (*self._answering, *(() if self._task is None else (self._task,))):
            await cancel_fully(task)
        self._listener.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            # before accepting: who waits for a slot waits in the kernel
            await self._slots.acquire()
            try:
                client, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                self._slots.release()
                log.warning(
                    "metrics_not_served",
                    error_type=type(error).__name__,
                    delay_seconds=_RETRY_SECONDS,
                )
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            task = asyncio.create_task(self._answer(client), name="metrics-answer")
            self._answering.add(task)
            task.add_done_callback(self._answered)
            # the rate is bounded here, whoever calls: a scrape comes every few seconds
            await asyncio.sleep(1 / CONNECTIONS_A_SECOND)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        self._slots.release()

    async def _answer(self, client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        client.setblocking(False)
        with client, suppress(OSError, TimeoutError):
            async with asyncio.timeout(HEAD_SECONDS):
                head = b""
                while b"\r\n\r\n" not in head and len(head) < HEAD_BYTES_MAX:
                    received = await loop.sock_recv(client, HEAD_BYTES_MAX)
                    if not received:
                        return
                    head += received
            async with asyncio.timeout(ANSWER_SECONDS):
                await loop.sock_sendall(client, await self._answer_to(head))
                # before the close: a client that has sent more would get a reset in place of the
                # answer's end
                client.shutdown(socket.SHUT_WR)

    async def _answer_to(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
        text = self._texts.get(path)
        if text is None:
            return _response(
                HTTPStatus.NOT_FOUND, f"there is {' and '.join(self._texts)}\n".encode()
            )
        if method != b"GET":
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET\n", "Allow: GET")
        return _response(HTTPStatus.OK, await text())


def _response(status: HTTPStatus, body: bytes, *headers: str) -> bytes:
    lines = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {_CONTENT_TYPE}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    )
    return "\r\n".join((*lines, "", "")).encode() + body


MADE_EVERY_SECONDS: Final = 1.0


class Exposition:
    """The text of `/metrics`: rendered at most once a second for any number of callers."""

    def __init__(
        self, make: Callable[[], Awaitable[bytes]], *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._make = make
        self._now = now
        self._made_at = float("-inf")
        self._text = b""
        self._making = asyncio.Lock()

    async def text(self) -> bytes:
        """Return the last text if it is recent; callers share a rendering in progress."""
        # the lock makes callers wait for the rendering under way, and then share it
        async with self._making:
            if self._now() >= self._made_at + MADE_EVERY_SECONDS:
                self._text = await self._make()
                self._made_at = self._now()
            return self._text


def merged(texts: Mapping[str, bytes]) -> bytes:
    """Merge the texts of several processes; the label `role` names each.

    The samples of a metric stand together, as the format demands.
    """
    families: dict[bytes, list[bytes]] = {}
    for role, text in texts.items():
        label = b'role="%b"' % role.encode()
        samples: list[bytes] = []
        for line in text.splitlines():
            if line.startswith((b"# HELP ", b"# TYPE ")):
                family = line.split(b" ", 3)[2]
                if family not in families:
                    families[family] = []
                samples = families[family]
                # several processes print the same HELP and TYPE: the format allows each once
                if line not in samples[:2]:
                    samples.insert(min(len(samples), int(line.startswith(b"# TYPE "))), line)
            elif line and not line.startswith(b"#"):
                samples.append(_labelled(line, label))
    return b"".join(b"%b\n" % line for samples in families.values() for line in samples)


def _labelled(sample: bytes, label: bytes) -> bytes:
    name, brace, rest = sample.partition(b"{")
    if brace:
        return b"%b{%b,%b" % (name, label, rest)
    name, _, value = sample.partition(b" ")
    return b"%b{%b} %b" % (name, label, value)

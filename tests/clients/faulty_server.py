"""A server that answers each request with the next fault of a script, and counts what arrived; and
one that is a service otherwise.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from tests.world.ports import free_port


def answer(status: int, body: bytes = b"{}", *, headers: str = "") -> bytes:
    content_type = "application/json" if status < 400 else "application/problem+json"
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length:"
        f" {len(body)}\r\n{headers}\r\n".encode()
        + body
    )


@dataclass
class FaultyServer:
    """`script`: what the requests get in their order, the last one for ever.

    Empty: cut off after the request was read. None: silence.
    """

    script: Sequence[bytes | None]
    url: str = field(default_factory=lambda: f"http://127.0.0.1:{free_port()}")
    requests: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        server = await asyncio.start_server(
            self._serve, "127.0.0.1", int(self.url.rpartition(":")[2])
        )
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _request(reader))[0]:
                self.requests.append(request[0].partition(" HTTP")[0])
                reply = await self._reply(*request)
                if reply is None:
                    await reader.read()
                    return
                writer.write(reply)
                await writer.drain()
                if len(reply) < _length(reply):
                    return
        finally:
            writer.close()

    async def _reply(self, _head: str, _body: bytes) -> bytes | None:
        return self.script[min(len(self.requests), len(self.script)) - 1]


@dataclass
class LossyProxy(FaultyServer):
    """Has the service at `target` carry every request out, and answers the first ones with
    `script`, as if the answers were lost.
    """

    target: str = ""
    carried_out: int = 0

    async def _reply(self, head: str, body: bytes) -> bytes | None:
        host, _, port = self.target.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        kept = [
            line
            for line in head.split("\r\n")
            if line and not line.lower().startswith("connection:")
        ]
        writer.write("\r\n".join([*kept, "Connection: close", "", ""]).encode() + body)
        answered = await reader.read()
        writer.close()
        self.carried_out += 1
        return (
            self.script[len(self.requests) - 1]
            if len(self.requests) <= len(self.script)
            else answered
        )


async def _request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """Return head and body; an empty head where the connection ended."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return "", b""
    body = b""
    for line in head.lower().splitlines():
        if line.startswith("content-length:"):
            body = await reader.readexactly(int(line.partition(":")[2]))
    return head, body


def _length(reply: bytes) -> int:
    """Return the length of the whole answer, as it announces itself; 1 for none at all, so that
    the connection is cut.
    """
    head, _, _ = reply.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(head) + 4 + int(line.partition(b":")[2])
    return 1

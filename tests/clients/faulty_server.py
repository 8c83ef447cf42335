"""A server that answers each request with the next fault of a script, and counts what arrived."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.world.ports import free_port


def answer(status: int, body: bytes = b"{}", *, headers: str = "") -> bytes:
    content_type = "application/json" if status < 400 else "application/problem+json"
    return f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


@dataclass
class FaultyServer:
    """`script`: what the requests get in their order, the last one for ever. Empty: cut off after the request was read. None: silence."""

    script: Sequence[bytes | None]
    url: str = field(default_factory=lambda: f"http://127.0.0.1:{free_port()}")
    requests: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["FaultyServer"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", int(self.url.rpartition(":")[2]))
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await _head(reader):
                self.requests.append(head.partition(" HTTP")[0])
                reply = self.script[min(len(self.requests), len(self.script)) - 1]
                if reply is None:
                    await reader.read()
                    return
                writer.write(reply)
                await writer.drain()
                if len(reply) < _length(reply):
                    return
        finally:
            writer.close()


async def _head(reader: asyncio.StreamReader) -> str:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return ""
    for line in head.lower().splitlines():
        if line.startswith("content-length:"):
            await reader.readexactly(int(line.partition(":")[2]))
    return head


def _length(reply: bytes) -> int:
    """Return the length of the whole answer, as it announces itself; 1 for none at all, so that the connection is cut."""
    head, _, _ = reply.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(head) + 4 + int(line.partition(b":")[2])
    return 1

"""A request whose body comes in two parts, the second one when the test says so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self


class SlowRequest:
    """One webhook on a connection of its own; its head and half of its body have been sent."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rest: bytes
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._rest = rest

    @classmethod
    async def begin(cls, port: int, carrier_id: str, body: bytes) -> Self:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = (
            f"POST /v1/webhooks/{carrier_id} HTTP/1.1\r\nHost: statesvc\r\nContent-Length:"
            f" {len(body)}\r\n\r\n"
        )
        half = len(body) // 2
        writer.write(head.encode() + body[:half])
        await writer.drain()
        return cls(reader, writer, body[half:])

    async def finish(self) -> int:
        """Send the rest; return the status of the answer."""
        self._writer.write(self._rest)
        await self._writer.drain()
        return int((await self._reader.readline()).split()[1])

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def slow_request(port: int, carrier_id: str, body: bytes) -> AsyncIterator[SlowRequest]:
    """Begin a request, and close it at the end of the block."""
    request = await SlowRequest.begin(port, carrier_id, body)
    try:
        yield request
    finally:
        request.close()

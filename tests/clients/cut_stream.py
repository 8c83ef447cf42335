"""A stream that is cut off before its first change: what happens meanwhile must reach every
client.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self
from uuid import uuid4

from tests.acceptance.processes import Service
from tests.world.ports import free_port

Follow = Callable[[str], Awaitable[str]]
"""Follow the stream of the service at a URL; return the tracking number of the first change."""


@dataclass
class CuttingProxy:
    """Cuts the first stream behind its first block, and holds the next one until `reopened`."""

    target: str
    url: str = field(default_factory=lambda: f"http://127.0.0.1:{free_port()}")
    cut: asyncio.Event = field(default_factory=asyncio.Event)
    reopened: asyncio.Event = field(default_factory=asyncio.Event)
    resumed: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        port = int(self.url.rpartition(":")[2])
        server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            # a browser opens connections in advance
            writer.close()
            return
        is_first = not self.cut.is_set()
        if not is_first:
            await self.reopened.wait()
        host, _, port = self.target.removeprefix("http://").partition(":")
        answer, service = await asyncio.open_connection(host, int(port))
        try:
            service.write(request)
            opening = await answer.readuntil(b"\n\n")
            # as long as it was, so that the chunk stays whole: the client comes back at once
            writer.write(
                re.sub(rb"(?<=retry: )\d+", lambda found: b"1".zfill(len(found[0])), opening)
            )
            writer.write(await answer.readuntil(b"\r\n"))
            await writer.drain()
            if is_first:
                # a browser drops what it has received and not yet read when the connection breaks
                await asyncio.sleep(0.1)
                self.cut.set()
                return
            self.resumed.set()
            while chunk := await answer.read(65536):
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            service.close()
            writer.close()


async def is_lost(service: Service, follow: Follow) -> bool:
    """Follow across a cut; return whether the change that happened during it did not reach the
    client.
    """
    during, after = (f"1ZCUT{uuid4().hex[:12].upper()}" for _ in range(2))
    async with CuttingProxy(service.api.url).running() as proxy, asyncio.timeout(60):
        following = asyncio.ensure_future(follow(proxy.url))
        await proxy.cut.wait()
        await _change(service, during)
        proxy.reopened.set()
        await proxy.resumed.wait()
        # a client that lost its place sees this one first
        await _change(service, after)
        seen = await following
    assert seen in {during, after}
    return seen == after


async def _change(service: Service, number: str) -> None:
    event = {
        "carrier_id": "ups",
        "event_id": number,
        "tracking_number": number,
        "occurred_at": "2026-05-01T10:00:00+02:00",
        "status": "picked_up",
    }
    status, answer = await service.post(
        "/v1/events", json.dumps(event), **{"Content-Type": "application/json"}
    )
    assert status == 201, answer
    # the sealer decides
    while number not in str(await service.get("/v1/feed/transitions", limit="1000")):  # noqa: ASYNC110
        await asyncio.sleep(0.05)

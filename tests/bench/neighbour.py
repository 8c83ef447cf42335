"""A client that makes the service work while others push, in a process of its own:
`neighbour KIND`, told what it needs by standard input.

Goes on until standard input ends, then writes how many answers of which status it got. Kinds:
`evidence` (four readers in turn: JSON, HTML, PDF, audit), `lists` (1,000 pages a second), `streams`
(100 readers), `half_open` (connections with half a head), `bodies` (1,000 of 1 MiB at once, again
and again), `17track` (54 anonymous bodies of 1 MiB a second).
"""

import asyncio
import json
import resource
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import cycle
from typing import Any, Final

import aiohttp
import uvloop

_MIB: Final = 1024 * 1024
_READERS: Final = 4
_PAGES_A_SECOND: Final = 1_000
_PAGES_TOGETHER: Final = 50
_STREAMS: Final = 100
_BODIES: Final = 1_000
_17TRACK_A_SECOND: Final = 54
_HALF_A_HEAD: Final = b"POST /v1/webhooks/ups HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le"


class Neighbour:
    """`told`: port, `keys` that calls are made with in turn, and `path` of a shipment or the
    number of `connections`.
    """

    def __init__(self, told: dict[str, Any], session: aiohttp.ClientSession) -> None:
        self._told = told
        self._session = session
        self._url = f"http://127.0.0.1:{told['port']}"
        self._keys = cycle(told["keys"])
        self.statuses: Counter[str] = Counter()

    async def evidence(self) -> None:
        """Read evidence by four readers, each of which asks for the next when it has one."""
        path = self._told["path"]
        asked = cycle(
            [
                ("evidence", "application/json"),
                ("evidence", "text/html"),
                ("evidence", "application/pdf"),
                ("audit", "application/json"),
            ]
        )

        async def read() -> None:
            while True:
                what, accept = next(asked)
                await self._get(f"{path}/{what}", accept=accept)

        await asyncio.gather(*(read() for _ in range(_READERS)))

    async def lists(self) -> None:
        """List at a fixed rate."""
        async with asyncio.TaskGroup() as running:
            while True:
                for _ in range(_PAGES_TOGETHER):
                    running.create_task(self._get("/v1/shipments?limit=50"))
                await asyncio.sleep(_PAGES_TOGETHER / _PAGES_A_SECOND)

    async def streams(self) -> None:
        """Read streams, whatever comes."""

        async def read() -> None:
            async with self._session.get(
                f"{self._url}/v1/stream", headers=self._authorization()
            ) as answer:
                self.statuses[str(answer.status)] += 1
                async for _ in answer.content.iter_any():
                    pass

        await asyncio.gather(*(read() for _ in range(_STREAMS)))

    async def half_open(self) -> None:
        """Hold as many connections as it may have; one that is ended is opened again."""

        async def hold() -> None:
            while True:
                try:
                    reader, writer = await asyncio.open_connection("127.0.0.1", self._told["port"])
                except OSError:
                    self.statuses["refused"] += 1
                    await asyncio.sleep(1)
                    continue
                self.statuses["opened"] += 1
                writer.write(_HALF_A_HEAD)
                with suppress(OSError):
                    await reader.read()
                writer.close()

        await asyncio.gather(*(hold() for _ in range(self._told["connections"])))

    async def bodies(self) -> None:
        """Push bodies, each the next after the answer."""
        body = b'{"trackingNumber":"' + b"9" * (_MIB - 64) + b'"}'

        async def push() -> None:
            while True:
                await self._post("/v1/webhooks/ups", body)

        await asyncio.gather(*(push() for _ in range(_BODIES)))

    async def seventeen_track(self) -> None:
        """Push bodies whose signature stands inside."""
        body = (
            b'{"sign":"'
            + b"0" * 64
            + b'","event":"TRACKING_UPDATED","data":['
            + b"1," * (_MIB // 2 - 80)
            + b"1]}"
        )
        async with asyncio.TaskGroup() as running:
            while True:
                running.create_task(self._post("/v1/webhooks/17track", body))
                await asyncio.sleep(1 / _17TRACK_A_SECOND)

    async def _get(self, path: str, *, accept: str = "application/json") -> None:
        await self._ask("GET", path, headers={"Accept": accept, **self._authorization()})

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {next(self._keys)}"}

    async def _post(self, path: str, body: bytes) -> None:
        await self._ask("POST", path, data=body)

    async def _ask(self, method: str, path: str, **options: Any) -> None:
        try:
            async with self._session.request(method, f"{self._url}{path}", **options) as answer:
                await answer.read()
                self.statuses[str(answer.status)] += 1
        except (aiohttp.ClientError, TimeoutError) as error:
            self.statuses[type(error).__name__] += 1


async def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    told = json.loads(sys.stdin.readline())
    connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        neighbour = Neighbour(told, session)
        kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "evidence": neighbour.evidence,
            "lists": neighbour.lists,
            "streams": neighbour.streams,
            "half_open": neighbour.half_open,
            "bodies": neighbour.bodies,
            "17track": neighbour.seventeen_track,
        }
        going = asyncio.ensure_future(kinds[told["kind"]]())
        ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        await asyncio.wait([going, ended], return_when=asyncio.FIRST_COMPLETED)
        if going.done():
            going.result()
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)
    sys.stdout.write(json.dumps(neighbour.statuses))


if __name__ == "__main__":
    uvloop.run(main())

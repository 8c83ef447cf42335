"""`GET /v1/stream` over all cells: a client's stream is fed by one of each cell, and its ids hold a place in each log.

A cell that ends its stream is asked again from its place in the id, so nothing of it is missed or repeated; while it is away the client
is notified by `event: partial`, and the other cells go on. There is no order between logs. A client that takes nothing is cut off: nothing
is stored for it here, and it comes back by its last id.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import aiohttp
import orjson
from aiohttp import hdrs, web

from statesvc.gateway.cell_client import CellAnswer, CellClient, RefusedError, one_or_all, unavailable
from statesvc.gateway.places import NOW, lost_place, read_places, written_places
from statesvc.gateway.tickets_over_cells import TICKET, read_tickets
from statesvc.http.operation import Route, operation
from statesvc.http.problem import Code, Problem
from statesvc.telemetry import gauges
from statesvc.telemetry.metrics import Telemetry, Values

EVENT_STREAM: Final = "text/event-stream"
PATH: Final = "/v1/stream"
_HEADERS: Final = {hdrs.CONTENT_TYPE: EVENT_STREAM, hdrs.CACHE_CONTROL: "no-store", "X-Accel-Buffering": "no"}
_LAST_EVENT_ID: Final = "Last-Event-ID"
_FIRST: Final = "-1"
_TOO_MANY: Final = 429
"""The key has too many streams there: perhaps the cell has not noticed yet that one of them ended."""
_PING: Final = b": ping\n\n"
_PING_SECONDS: Final = 15.0
_RETRY_SECONDS: Final = (1.0, 5.0)
"""How long a client is to wait before it comes back."""
_AWAY_SECONDS: Final = (0.5, 1.5)
"""Before a cell that is away is asked again."""
_AT_ONCE_SECONDS: Final = (0.05, 0.3)
"""Before it asks a cell whose stream ended: its other process may be there."""


@dataclass(slots=True, eq=False)
class StreamClient:
    """Who is sent to. `places`: up to where the client has each log; None: from now on, whenever that cell answers."""

    response: web.StreamResponse
    transport: asyncio.Transport | None
    places: dict[str, str | None]
    send_seconds: float
    away: set[str] = field(default_factory=set)
    _sending: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def take(self, name: str, blocks: Sequence[bytes]) -> None:
        """Sends what a cell sent, under ids that hold a place in every log."""
        async with self._sending:
            await self._send(b"".join(self._rewritten(name, block) for block in blocks))

    async def turn(self, name: str, *, is_away: bool) -> None:
        """Says which cells are away, if that has changed."""
        async with self._sending:
            if is_away == (name in self.away):
                return
            (self.away.add if is_away else self.away.discard)(name)
            await self._send(self.partial_event())

    async def ping(self) -> None:
        """Shows that the stream goes on, and whether the client is there."""
        async with self._sending:
            await self._send(_PING)

    async def open(self, retry_seconds: float) -> None:
        """The first bytes."""
        async with self._sending:
            await self._send(b"retry: %d\n\n" % round(retry_seconds * 1000) + (self.partial_event() if self.away else b""))

    def partial_event(self) -> bytes:
        """It has no id: it moves no place."""
        return b"event: partial\ndata: %b\n\n" % orjson.dumps({"partial": sorted(self.away)})

    def _rewritten(self, name: str, block: bytes) -> bytes:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":"))
        if b"id" not in fields:
            # a ping, or how long to wait: the gateway says both itself
            return b""
        self.places[name] = fields[b"id"].decode()
        place = b"id: %b\n" % written_places(self.places).encode()
        if b"data" not in fields:
            return place + b"\n"
        data = orjson.dumps({**orjson.loads(fields[b"data"]), "cell": name})
        return place + b"event: %b\ndata: %b\n\n" % (fields[b"event"], data)

    async def _send(self, text: bytes) -> None:
        if not text:
            return
        try:
            async with asyncio.timeout(self.send_seconds):
                await self.response.write(text)
        except TimeoutError:
            if self.transport is not None:
                self.transport.abort()
            raise ConnectionResetError from None


class StreamOverCells:
    """The handler. `send_seconds`: how long a client may take nothing before it is cut off."""

    def __init__(self, cells: CellClient, telemetry: Telemetry, *, send_seconds: float) -> None:
        self._cells = cells
        self._send_seconds = send_seconds
        self._clients: set[StreamClient] = set()
        self._stopping = asyncio.Event()
        self._jitter = random.Random()  # noqa: S311 - spreads clients, guards nothing
        telemetry.observe(gauges.STREAM_CLIENTS, self._count)

    def stop(self) -> None:
        """Ends all streams and lets no one in any more. Idempotent."""
        self._stopping.set()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Sends until the client has gone, its key is revoked, a log was restored, or `stop`."""
        if self._stopping.is_set():
            raise Problem(Code.NOT_READY, "the process is stopping; come back elsewhere")
        places = self._places(request)
        opened = await self._open_all(request, places)
        # the ticket is the whole right: a page of any origin may read what it opens
        any_origin = {hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: "*"} if TICKET in request.query else {}
        response = web.StreamResponse(headers=_HEADERS | any_origin)
        # a client that comes back should find another gateway, which it can't on the same connection
        response.force_close()
        away = {name for name in places if name not in opened}
        client = StreamClient(response, request.transport, places, self._send_seconds, away)
        try:
            await response.prepare(request)
            if request.method != hdrs.METH_HEAD:
                with suppress(aiohttp.ClientError, OSError):
                    # it may be gone before the first bytes
                    await self._run(request, client, opened)
        finally:
            for stream in opened.values():
                stream.close()
        return response

    async def _run(self, request: web.Request, client: StreamClient, opened: Mapping[str, aiohttp.ClientResponse]) -> None:
        """Until the first of its tasks ends, whichever that is."""
        await client.open(self._jitter.uniform(*_RETRY_SECONDS))
        follow = partial(self._follow, request, client)
        tasks = [asyncio.create_task(follow(name, opened.get(name)), name=f"stream-{name}") for name in client.places]
        tasks += [asyncio.create_task(_ping(client), name="stream-ping"), asyncio.create_task(self._until_stop(), name="stream-stop")]
        self._clients.add(client)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._clients.discard(client)
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception) and not isinstance(error, aiohttp.ClientError | OSError):
                raise error

    async def _follow(self, request: web.Request, client: StreamClient, name: str, stream: aiohttp.ClientResponse | None) -> None:
        """Passes on what the cell sends, from one connection to the next; returns where the cell refuses."""
        wait = _AWAY_SECONDS
        while True:
            if stream is not None:
                wait = _AT_ONCE_SECONDS
                await client.turn(name, is_away=False)
                async with stream:
                    await _pass_on(stream, client, name)
            await asyncio.sleep(self._jitter.uniform(*wait))
            found = await self._open(request, name, client.places[name])
            if isinstance(found, CellAnswer) and found.status != _TOO_MANY:
                return
            stream = None if isinstance(found, CellAnswer) else found
            if stream is None:
                wait = _AWAY_SECONDS
                await client.turn(name, is_away=True)

    async def _open_all(self, request: web.Request, places: Mapping[str, str | None]) -> dict[str, aiohttp.ClientResponse]:
        """The streams of the cells that answer. Raises the problem 503 where none does, and the first refusal."""
        found = dict(zip(places, await asyncio.gather(*(self._open(request, *each) for each in places.items())), strict=True))
        opened = {name: each for name, each in found.items() if isinstance(each, aiohttp.ClientResponse)}
        refusals = {name: each for name, each in found.items() if isinstance(each, CellAnswer)}
        if refusals or not opened:
            for stream in opened.values():
                stream.close()
        for name, refusal in refusals.items():
            raise RefusedError(lost_place(name, refusal, places))
        if not opened:
            raise unavailable(places)
        return opened

    async def _open(self, request: web.Request, name: str, place: str | None) -> aiohttp.ClientResponse | CellAnswer | None:
        query = {key: request.query.getall(key) for key in request.query if key != "after"}
        if TICKET in query:
            ticket = read_tickets(request.query[TICKET]).get(name)
            if ticket is None:
                # it did not answer when the ticket was made
                return None
            query[TICKET] = [ticket]
        return await self._cells.open(request, name, query=query, headers={} if place is None else {_LAST_EVENT_ID: place})

    def _places(self, request: web.Request) -> dict[str, str | None]:
        """Of each cell. One that the id does not name is new to the client: it gets all of its log."""
        text = request.headers.get(_LAST_EVENT_ID) or request.query.get("after", "")
        every = self._cells.directory.cells
        if not text:
            return dict.fromkeys(every)
        known: Mapping[str, str] = {} if text == _FIRST else read_places(text, or_now=True)
        return {name: None if (place := known.get(name, _FIRST)) == NOW else place for name in every}

    async def _until_stop(self) -> None:
        await self._stopping.wait()

    def _count(self) -> Iterator[tuple[float, Values]]:
        count = Counter("partial" if client.away else "live" for client in self._clients)
        for state in ("live", "partial"):
            yield count[state], {"state": state}


async def _pass_on(stream: aiohttp.ClientResponse, client: StreamClient, name: str) -> None:
    """Until the cell ends it, or is gone. Raises what the client's connection raises."""
    rest = b""
    while True:
        try:
            chunk = await stream.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return
        if not chunk:
            return
        *blocks, rest = (rest + chunk).split(b"\n\n")
        await client.take(name, blocks)


async def _ping(client: StreamClient) -> None:
    while True:
        await asyncio.sleep(_PING_SECONDS)
        await client.ping()


def routes(cells: CellClient, streams: StreamOverCells) -> Sequence[Route]:
    """The one call."""
    described: Any = operation(
        operation_id="stream_transitions",
        summary="Changes of status as they happen",
        description="Of all cells, each with its `cell`; the `id` holds a place in each log. `event: partial` lists those that are away.",
        scope=None,
        checked=False,
        deadline_seconds=None,
    )
    return [Route("GET", PATH, one_or_all(cells, streams.serve), described)]

"""Streams of cells that break off anywhere become one stream, of which a client that comes and goes misses and repeats nothing."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from statesvc.cells.directory import checked_directory
from statesvc.gateway import stream_over_cells
from statesvc.gateway.cell_client import CellClient
from statesvc.gateway.stream_over_cells import StreamOverCells, routes
from statesvc.http.app import build_app
from statesvc.telemetry.metrics import Telemetry
from tests.statesvc.api.stream.event_source import Received, event_source


class StreamingCell:
    """Speaks as a cell's stream does, from a log of numbers: it breaks off after some bytes, refuses, or fails."""

    def __init__(self, name: str, length: int) -> None:
        self.name = name
        self.length = length
        self.chance = random.Random(name)
        self.status = 200
        self.breaks = True
        self.asked: list[str | None] = []
        self.tickets: list[str | None] = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        after = request.headers.get("Last-Event-ID")
        self.asked.append(after)
        self.tickets.append(request.query.get("ticket"))
        if self.status != 200:
            return web.json_response({"code": "of the cell", "go_on_after": "2.3"}, status=self.status)
        first = self.length if after is None else int(after.partition(".")[2] or after) + 1
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        frames = [b"retry: 1000\nid: 1.%d\n\n" % (first - 1)]
        frames += [b'id: 1.%d\nevent: changed\ndata: {"n":%d}\n\n: ping\n\n' % (n, n) for n in range(first, self.length)]
        text = b"".join(frames)
        await response.write(text[: self.chance.randint(1, 2000)] if self.breaks else text)
        if not self.breaks:
            await asyncio.sleep(60)
        return response


class Gateway:
    """Before two such cells."""

    def __init__(self, cells: dict[str, StreamingCell], client: TestClient[Any, Any], streams: StreamOverCells) -> None:
        self.cells = cells
        self.client = client
        self.streams = streams


@pytest.fixture
async def gateway(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gateway]:
    for name in ("_AWAY_SECONDS", "_AT_ONCE_SECONDS"):
        monkeypatch.setattr(stream_over_cells, name, (0.001, 0.01))
    async with opened({"north": StreamingCell("north", 300), "south": StreamingCell("south", 200)}) as found:
        yield found


@asynccontextmanager
async def opened(cells: dict[str, StreamingCell]) -> AsyncIterator[Gateway]:
    async with AsyncExitStack() as stack:
        urls = {}
        for name, cell in cells.items():
            app = web.Application()
            app.router.add_get("/v1/stream", cell.serve)
            server = await stack.enter_async_context(TestServer(app))
            urls[name] = {"urls": [f"http://127.0.0.1:{server.port}"]}
        directory = checked_directory({"epoch": 1, "default": "north", "cells": urls}, "test")
        telemetry = Telemetry()
        stack.callback(telemetry.close)
        asked = CellClient(directory, telemetry, answer_seconds=5)
        stack.push_async_callback(asked.close)
        streams = StreamOverCells(asked, telemetry, send_seconds=5)
        server = await stack.enter_async_context(TestServer(build_app(routes(asked, streams), keys=None)))
        client: TestClient[Any, Any] = await stack.enter_async_context(TestClient(server))
        stack.callback(streams.stop)
        yield Gateway(cells, client, streams)


def numbers(seen: list[Received], cell: str) -> list[int]:
    return [block.data["n"] for block in seen if block.data.get("cell") == cell]


async def test_streams_that_break_off_anywhere_are_one_that_misses_and_repeats_nothing(gateway: Gateway) -> None:
    seen: list[Received] = []
    chance = random.Random(5)
    place = "-1"
    while len(seen) < 500:
        async with event_source(gateway.client, headers={"Last-Event-ID": place}) as source:
            for block in await source.next(min(chance.randint(1, 60), 500 - len(seen))):
                assert block.name == "changed"
                seen.append(block)
                place = block.id or place
    assert (numbers(seen, "north"), numbers(seen, "south")) == (list(range(300)), list(range(200)))
    assert place == "north=1.299,south=1.199"


async def test_from_now_on_begins_where_each_log_ends_and_the_id_says_so_before_anything_happens(gateway: Gateway) -> None:
    gateway.cells["south"].status = 503
    gateway.cells["north"].breaks = False
    async with event_source(gateway.client) as source:
        blocks = [await anext(aiter(source)) for _ in range(2)]
        assert (blocks[0].name, blocks[0].data) == ("partial", {"partial": ["south"]})
        assert blocks[1].id == "north=1.299,south=now"
    gateway.cells["north"].length += 1
    gateway.cells["south"].status = 200
    gateway.cells["south"].breaks = False
    async with event_source(gateway.client, headers={"Last-Event-ID": "north=1.299,south=now"}) as source:
        (block,) = await source.next()
        assert block.data == {"n": 300, "cell": "north"}
    assert gateway.cells["south"].asked[-1] is None


async def test_a_new_cell_is_read_from_its_first_entry(gateway: Gateway) -> None:
    async with event_source(gateway.client, headers={"Last-Event-ID": "north=1.299"}) as source:
        assert numbers(await source.next(3), "south") == [0, 1, 2]


async def test_each_cell_gets_its_own_ticket_and_one_without_is_not_asked(gateway: Gateway) -> None:
    for cell in gateway.cells.values():
        cell.breaks = False
    async with event_source(gateway.client, "/v1/stream?ticket=north%3Da.b%3D&after=-1") as source:
        assert (await source.next())[0].data == {"partial": ["south"]}
        assert len(numbers(await source.next(300), "north")) == 300
    assert (gateway.cells["north"].tickets, gateway.cells["south"].tickets) == (["a.b="], [])
    assert (await gateway.client.get("/v1/stream?ticket=a.b")).status == 422


async def test_a_restored_log_is_410_with_the_places_in_the_others_as_they_were(gateway: Gateway) -> None:
    gateway.cells["south"].status = 410
    answer = await gateway.client.get("/v1/stream", headers={"Last-Event-ID": "north=1.7,south=1.150"})
    document = await answer.json()
    assert (answer.status, document["cell"], document["go_on_after"]) == (410, "south", "north=1.7,south=2.3")


async def test_a_cell_that_refuses_later_ends_the_stream_and_one_that_fails_does_not(gateway: Gateway) -> None:
    gateway.cells["north"].breaks = False
    async with event_source(gateway.client) as source:
        gateway.cells["south"].status = 503
        assert (await source.next())[0].data == {"partial": ["south"]}
        gateway.cells["south"].status = 401
        assert await source.rest() == []
    answer = await gateway.client.get("/v1/stream")
    assert answer.status == 401


async def test_an_id_of_one_cell_is_refused_no_cell_is_503_and_a_stopping_gateway_ends_its_streams(gateway: Gateway) -> None:
    for cell in gateway.cells.values():
        cell.breaks = False
    assert (await gateway.client.get("/v1/stream", headers={"Last-Event-ID": "1.5"})).status == 400
    async with event_source(gateway.client) as source:
        for cell in gateway.cells.values():
            cell.status = 500
        assert (await gateway.client.get("/v1/stream")).status == 503
        gateway.streams.stop()
        assert await source.rest() == []

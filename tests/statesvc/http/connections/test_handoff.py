"""Two servers behind one port: whose request it is decides, not where the client's connection is.

Real sockets.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
import uvloop
from aiohttp import web

from statesvc.http.app import Server
from statesvc.http.connections.client_connection import Sharing
from statesvc.http.connections.handoff import Handoff
from statesvc.http.middleware import problems
from statesvc.http.problem import Code
from statesvc.roles.shared_port import (
    SharedPort,
    is_for_api,
    is_for_ingress,
    is_webhook,
    path_begins,
    without_api,
)
from tests.statesvc.http.connections.conftest import Connect
from tests.world.waiting import until

BIG = b"x" * 5_000_000


@dataclass
class Answering:
    """One process: says who it is."""

    name: str
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def app(self, *, alone: bool) -> web.Application:
        app = web.Application(
            client_max_size=10_000_000, middlewares=[problems, *([] if alone else [without_api])]
        )
        app.router.add_route("*", "/v1/slow", self.slow)
        app.router.add_route("*", "/{path:.*}", self.say)
        return app

    async def say(self, request: web.Request) -> web.Response:
        body = await request.read()
        return web.json_response(
            {"by": self.name, "path": request.path, "from": request.remote, "bytes": len(body)}
        )

    async def slow(self, request: web.Request) -> web.Response:
        self.begun.set()
        await self.gate.wait()
        return await self.say(request)


class Side:
    """One of the two ends: its server, and its part of the shared port."""

    def __init__(self, path: Path, *, is_ingress: bool) -> None:
        self.answering = Answering("ingress" if is_ingress else "api")
        self.port_of_both = SharedPort(path, is_ingress=is_ingress)
        sharing: Sharing = self.port_of_both.accepted
        self.server = Server(
            self.answering.app(alone=not is_ingress),
            host="127.0.0.1",
            port=0,
            grace_seconds=1,
            sharing=sharing,
        )
        self.port = 0
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.port = await self.server.start()
        self._running = asyncio.create_task(self.port_of_both.part(self.server).run())

    async def stop(self) -> None:
        self.port_of_both.part(self.server).stop()
        assert self._running is not None
        await self._running
        await self.server.stop()


class Pair(NamedTuple):
    ingress: Side
    api: Side


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    pair = Pair(*(Side(tmp_path / "api", is_ingress=first) for first in (True, False)))
    async with AsyncExitStack() as stack:
        for side in pair:
            await side.start()
            stack.push_async_callback(side.stop)
        await until(lambda: all(side.port_of_both.is_up for side in pair))
        yield pair


class Client(NamedTuple):
    """One connection, used as the test says."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        async with asyncio.timeout(5):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            )
            return int(head.split()[1]), await self.reader.readexactly(length)

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        await self.send(request(method, path, body))
        return await self.answer()


def request(method: str, path: str, body: bytes = b"") -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


def by(answer: tuple[int, bytes]) -> str:
    assert answer[0] == 200, answer
    return next(name for name in ("ingress", "api") if f'"by": "{name}"'.encode() in answer[1])


@pytest.mark.parametrize(
    ("head", "path"),
    [
        (b"POST /v1/webhooks/ups HTTP/1.1\r\n", "/v1/webhooks/"),
        (b"POST /v1/webhooks", None),
        (b"POST /v1/webhooks?a=1 HTTP/1.1", "/v1/webhooks"),
        (b"\r\nGET /readyz HTTP/1.1", "/readyz"),
        (b"GET /readyz?a HTTP/1.1", "/readyz"),
        (b"GET /ready", None),
        (b"GET /v1/shipments/ups/1Z HTTP/1.1", "/v1/shipments"),
        (b"GET ", None),
        (b"", None),
        (b"\x16\x03\x01\x02\x00" * 20, ""),
        (b"X" * 70, ""),
    ],
)
def test_the_first_bytes_say_whose_request_it_is(head: bytes, path: str | None) -> None:
    assert path_begins(head) == path
    answers = {
        None: (None, None, None),
        "/v1/webhooks/": (True, True, False),
        "/readyz": (False, True, False),
        "": (False, False, False),
    }
    assert (is_webhook(head), is_for_ingress(head), is_for_api(head)) == answers.get(
        path, (False, False, True)
    )


async def test_each_request_of_one_connection_is_answered_by_its_own_process(
    pair: Pair, connect: Connect
) -> None:
    client = Client(*await connect(pair.ingress.port))
    mine = client.writer.get_extra_info("sockname")[0]
    for _ in range(3):
        assert by(await client.ask("POST", "/v1/webhooks/ups", b"{}")) == "ingress"
        status, body = await client.ask("GET", "/v1/shipments")
        assert by((status, body)) == "api"
        assert f'"from": "{mine}"'.encode() in body
        assert by(await client.ask("GET", "/readyz")) == "ingress"
        assert by(await client.ask("POST", "/v1/events", b"{}")) == "api"


async def test_a_head_in_pieces_is_answered_by_its_own_process(
    pair: Pair, connect: Connect
) -> None:
    for path, name in (
        ("/v1/webhooks/ups", "ingress"),
        ("/v1/shipments", "api"),
        ("/livez", "ingress"),
    ):
        client = Client(*await connect(pair.ingress.port))
        for byte in request("POST", path, b"{}"):
            await client.send(bytes([byte]))
        assert by(await client.answer()) == name


async def test_a_large_body_goes_to_the_api_whole(pair: Pair, connect: Connect) -> None:
    client = Client(*await connect(pair.ingress.port))
    status, body = await client.ask("POST", "/v1/events", BIG)
    assert by((status, body)) == "api"
    assert f'"bytes": {len(BIG)}'.encode() in body


async def test_a_request_sent_before_the_answer_to_the_one_before_waits_for_its_own_process(
    pair: Pair, connect: Connect
) -> None:
    client = Client(*await connect(pair.ingress.port))
    await client.send(request("GET", "/v1/slow"))
    await asyncio.wait_for(pair.api.answering.begun.wait(), 5)
    await client.send(request("POST", "/v1/webhooks/ups", b"{}"))
    pair.api.answering.gate.set()
    assert by(await client.answer()) == "api"
    assert by(await client.answer()) == "ingress"


async def test_of_requests_in_one_piece_each_is_answered_and_none_is_lost(
    pair: Pair, connect: Connect
) -> None:
    client = Client(*await connect(pair.ingress.port))
    await client.send(request("GET", "/v1/shipments") + request("POST", "/v1/webhooks/ups", b"{}"))
    assert by(await client.answer()) == "api"
    # the api takes a webhook rather than lose it
    assert by(await client.answer()) == "api"
    client = Client(*await connect(pair.ingress.port))
    await client.send(request("POST", "/v1/webhooks/ups", b"{}") + request("GET", "/v1/shipments"))
    assert by(await client.answer()) == "ingress"
    status, body = await client.answer()
    assert (status, Code.API_UNAVAILABLE.encode() in body) == (503, True)


async def test_the_api_s_own_port_answers_for_its_health_and_hands_webhooks_to_ingress(
    pair: Pair, connect: Connect
) -> None:
    client = Client(*await connect(pair.api.port))
    assert by(await client.ask("GET", "/readyz")) == "api"
    assert by(await client.ask("POST", "/v1/webhooks/ups", b"{}")) == "ingress"


async def test_a_client_that_ends_keep_alive_is_let_go(pair: Pair, connect: Connect) -> None:
    for path in ("/v1/shipments", "/v1/webhooks/ups"):
        client = Client(*await connect(pair.ingress.port))
        await client.send(
            f"GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode()
        )
        await client.answer()
        async with asyncio.timeout(5):
            assert await client.reader.read() == b""


def test_what_another_process_read_comes_before_what_waits_in_the_socket(tmp_path: Path) -> None:
    # on the loop of the roles, which may read of an adopted socket before the adoption returns
    uvloop.run(_adopt_half_read_bodies(tmp_path))


async def _adopt_half_read_bodies(folder: Path) -> None:
    api, loop = Side(folder / "api", is_ingress=False), asyncio.get_running_loop()
    await api.server.start()
    try:
        await _adopt_each(api, folder, loop)
    finally:
        await api.server.stop()


async def _adopt_each(api: Side, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
    whole = request("POST", "/v1/events", b"y" * 200_000)
    sharing = Sharing(
        recipient=Handoff(folder / "other", listens=False, adopt=lambda *_: None),
        is_theirs=is_for_ingress,
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(100):
            with socket.create_connection(listener.getsockname()) as client:
                accepted, _ = listener.accept()
                client.sendall(whole)
                head = accepted.recv(1_000)
                client.setblocking(False)
                await api.server.adopt(accepted, head, sharing=sharing, is_shared=False)
                async with asyncio.timeout(5):
                    answer = await loop.sock_recv(client, 65_536)
            assert answer.startswith(b"HTTP/1.1 200"), answer
            assert b'"bytes": 200000' in answer

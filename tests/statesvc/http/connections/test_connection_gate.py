"""Admission of connections by a server, and how long it waits for a head. Real sockets."""

import asyncio
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from ipaddress import ip_network
from typing import Any

import pytest
from aiohttp import web

from statesvc.http.app import Server
from statesvc.http.connections.connection_gate import (
    CONNECTIONS_MAX,
    FILES_RESERVED,
    ConnectionGate,
    connections_allowed,
)
from tests.statesvc.http.connections.conftest import Connect
from tests.world.waiting import until

LOOPBACK = "127.0.0.1"


@pytest.fixture
def refused() -> list[str]:
    return []


def gate(refused: list[str], **limits: Any) -> ConnectionGate:
    return ConnectionGate(
        **{"connections_max": 4, "per_address_max": 2, "refused": refused.append, **limits}
    )


def test_an_address_has_a_share_and_the_process_a_bound(refused: list[str]) -> None:
    door = gate(refused)
    assert [door.enter(("192.0.2.1", port)) for port in range(3)] == [
        "192.0.2.1",
        "192.0.2.1",
        None,
    ]
    assert [door.enter((f"192.0.2.{place}", 1)) for place in (2, 3, 4)] == [
        "192.0.2.2",
        "192.0.2.3",
        None,
    ]
    assert refused == ["connections_of_address", "connections"]
    door.leave("192.0.2.1")
    assert door.enter(("192.0.2.1", 1)) == "192.0.2.1"
    assert door.connections == 4


def test_a_network_of_ipv6_is_one_address_and_a_mapped_one_is_ipv4(refused: list[str]) -> None:
    door = gate(refused)
    assert (
        door.enter(("2001:db8::1", 1, 0, 0))
        == door.enter(("2001:db8::2", 1, 0, 0))
        == "2001:db8::/64"
    )
    assert door.enter(("2001:db8::3", 1, 0, 0)) is None
    assert door.enter(("::ffff:192.0.2.1", 1, 0, 0)) == "192.0.2.1"


def test_our_own_proxies_have_no_share(refused: list[str]) -> None:
    door = gate(refused, proxies=[ip_network("10.0.0.0/8"), ip_network("fd00::/8")])
    assert [
        door.enter((address, 1)) for address in ("10.1.1.1", "10.1.1.1", "10.1.1.1", "fd00::1")
    ] == ["", "", "", ""]
    assert door.enter(("10.1.1.1", 1)) is None


@pytest.mark.parametrize(
    ("wanted", "files", "allowed"),
    [
        (None, 1024, 1024 - FILES_RESERVED),
        (None, 1_000_000, CONNECTIONS_MAX),
        (None, resource.RLIM_INFINITY, CONNECTIONS_MAX),
        (50_000, 1024, 1024 - FILES_RESERVED),
        (20, 1024, 20),
        (None, 64, 1),
    ],
)
def test_connections_stay_below_the_files_that_the_process_may_open(
    wanted: int | None, files: int, allowed: int
) -> None:
    assert connections_allowed(wanted, files) == allowed


Serve = Callable[[ConnectionGate], Awaitable[int]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    async with AsyncExitStack() as stack:

        async def serve(door: ConnectionGate) -> int:
            async def say(request: web.Request) -> web.Response:
                return web.Response(body=await request.read())

            app = web.Application()
            app.router.add_route("*", "/", say)
            server = Server(app, host=LOOPBACK, port=0, grace_seconds=1, gate=door)
            port = await server.start()
            stack.push_async_callback(server.stop)
            return port

        yield serve


async def answer(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(10):
        return await reader.read()


async def test_a_head_that_does_not_come_closes_its_connection(
    serve: Serve, connect: Connect, refused: list[str]
) -> None:
    door = gate(refused, head_seconds=0.1)
    port = await serve(door)
    silent, _ = await connect(port)
    assert await answer(silent) == b"", "who said nothing hears nothing"
    half, writer = await connect(port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Never: en")
    assert (await answer(half)).startswith(b"HTTP/1.1 408 ")
    assert refused == ["head_timeout", "head_timeout"]
    assert door.connections == 0


async def test_dripping_a_head_does_not_lengthen_its_time(
    serve: Serve, connect: Connect, refused: list[str]
) -> None:
    port = await serve(gate(refused, head_seconds=0.3))
    reader, writer = await connect(port)

    async def drip() -> None:
        while True:
            writer.write(b"GET / HTTP/1.1\r\nX: ")
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    # the answer is lost to a reset where the client was writing when its connection ended
    with suppress(ConnectionResetError):
        assert (await answer(reader)).startswith(b"HTTP/1.1 4")
    dripping.cancel()
    assert refused == ["head_timeout"]


async def test_a_second_head_has_its_own_time_without_the_pause_before_it(
    serve: Serve, connect: Connect, refused: list[str]
) -> None:
    port = await serve(gate(refused, head_seconds=0.2))
    reader, writer = await connect(port)
    for _ in range(2):
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n")
        # longer than a head may take: this is a body, and then a pause
        await asyncio.sleep(0.3)
        writer.write(b"body")
        async with asyncio.timeout(10):
            assert (await reader.readuntil(b"body")).startswith(b"HTTP/1.1 200")
        await asyncio.sleep(0.3)
    assert refused == []
    writer.write(b"POST / HT")
    assert (await answer(reader)).startswith(b"HTTP/1.1 408 ")
    assert refused == ["head_timeout"]


async def test_a_connection_too_many_is_refused_until_another_ends(
    serve: Serve, connect: Connect, refused: list[str]
) -> None:
    door = gate(refused, connections_max=2)
    port = await serve(door)
    first, second = [await connect(port) for _ in range(2)]
    third, _ = await connect(port)
    assert (await answer(third)).startswith(b"HTTP/1.1 503 ")
    assert refused == ["connections"]
    first[1].close()
    await until(lambda: door.connections != 2)
    again, writer = await connect(port)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    assert (await answer(again)).startswith(b"HTTP/1.0 200 ")
    second[1].close()


@pytest.mark.parametrize("path", ["/", "/nowhere"])
async def test_a_wrong_expectation_is_not_quoted(
    serve: Serve, connect: Connect, refused: list[str], path: str
) -> None:
    reader, writer = await connect(await serve(gate(refused)))
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: x\r\nExpect: Mrs Miller 1Z999\r\nConnection:"
        " close\r\n\r\n".encode()
    )
    said = await answer(reader)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"100-continue" in said
    assert b"Miller" not in said

"""Costs of a crowd at the metrics: bounded by the server, not by the crowd."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import pytest

from statesvc.telemetry.metrics_server import (
    CONNECTIONS_A_SECOND,
    CONNECTIONS_MAX,
    HEAD_SECONDS,
    MetricsServer,
)

CROWD = 90
CROWDED_SECONDS = 2.0


class Served:
    def __init__(self) -> None:
        self.asked = 0
        self.at_once = 0
        self.at_once_max = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]

    async def text(self) -> bytes:
        self.asked += 1
        self.at_once += 1
        self.at_once_max = max(self.at_once_max, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return b"x 1\n"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    made = Served()
    server = MetricsServer(made.listener, {"/metrics": made.text})
    server.start()
    yield made
    await server.close()


async def ask(port: int, head: bytes = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_a_crowd_is_served_at_the_pace_of_the_server(served: Served) -> None:
    started = time.monotonic()

    async def again_and_again() -> None:
        while time.monotonic() < started + CROWDED_SECONDS:
            assert (await ask(served.port)).endswith(b"\r\n\r\nx 1\n")

    await asyncio.gather(*(again_and_again() for _ in range(CROWD)))
    assert served.asked <= CONNECTIONS_A_SECOND * (time.monotonic() - started) + 1
    assert served.at_once_max <= CONNECTIONS_MAX


async def test_who_says_nothing_is_cut_off_and_keeps_nobody_out(served: Served) -> None:
    silent = [
        await asyncio.open_connection("127.0.0.1", served.port) for _ in range(CONNECTIONS_MAX)
    ]
    started = time.monotonic()
    assert (await ask(served.port)).startswith(b"HTTP/1.1 200 OK\r\n")
    assert time.monotonic() - started < HEAD_SECONDS * 5
    for reader, writer in silent:
        assert await reader.read() == b""
        writer.close()


async def test_other_paths_and_methods_get_nothing(served: Served) -> None:
    assert (await ask(served.port, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
    assert (await ask(served.port, b"POST /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 405 ")
    assert (await ask(served.port, b"\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
    assert (await ask(served.port, b"GET /metrics?x=1 HTTP/1.0\r\n\r\n")).startswith(
        b"HTTP/1.1 200 "
    )
    assert served.asked == 1

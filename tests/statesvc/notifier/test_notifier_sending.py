"""One POST: what the sender refuses to do, and how each failure of the other side is named."""

import asyncio
import contextlib
import socket
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.test_utils import TestServer

from statesvc.delivery.http_sender import HttpSender
from statesvc.delivery.outcome import RESPONSE_BYTES_MAX, Answer, AttemptOutcome
from tests.world.certificate import make_certificate

LOOPBACK = (ip_network("127.0.0.0/8"),)
HEADERS = {"webhook-id": "n1-00"}


@contextlib.asynccontextmanager
async def raw_server(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """Answer connections as `handle` does; at the end all of them are closed.

    Yields host and port.
    """
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handle(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(
        lambda reader, writer: tasks.add(asyncio.create_task(connected(reader, writer))),
        "127.0.0.1",
        0,
    )
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await asyncio.gather(*tasks)


async def send(url: str, *, allowed: Any = LOOPBACK, **limits: Any) -> Answer:
    async with HttpSender(allowed=allowed, **limits) as sender:
        return await sender.send(url, headers=HEADERS, body=b"{}")


async def test_a_redirect_is_a_refusal_and_never_followed(receiver: Any) -> None:
    receiver.statuses(307, Location=receiver.url + "/elsewhere")
    answer = await send(receiver.url)
    assert (answer.outcome, answer.status_code) == (AttemptOutcome.REFUSED, 307)
    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    ("host", "outcome"),
    [
        ("127.0.0.1", AttemptOutcome.ADDRESS_REFUSED),
        ("localhost", AttemptOutcome.ADDRESS_REFUSED),
        ("0x7f000001", AttemptOutcome.ADDRESS_REFUSED),
        ("[::ffff:127.0.0.1]", AttemptOutcome.ADDRESS_REFUSED),
        ("2130706433", AttemptOutcome.UNREACHABLE),
        ("127.1", AttemptOutcome.UNREACHABLE),
    ],
)
async def test_a_private_address_is_refused_however_it_is_written(
    receiver: Any, host: str, outcome: AttemptOutcome
) -> None:
    url = receiver.url.replace("127.0.0.1", host)
    for scheme in ("http", "https"):
        assert (await send(url.replace("http", scheme), allowed=())).outcome is outcome
    assert receiver.received == []


@pytest.mark.parametrize("host", ["8.8.8.8", "[2606:4700::1111]"])
async def test_plain_http_is_spoken_in_allowed_networks_only(host: str, receiver: Any) -> None:
    assert (await send(f"http://{host}/hook")).outcome is AttemptOutcome.ADDRESS_REFUSED
    assert (await send(receiver.url)).outcome is AttemptOutcome.DELIVERED


class MovingName(AbstractResolver):
    """A resolver that answers every name with one address."""

    def __init__(self, address: str) -> None:
        self.address = address

    async def resolve(
        self, host: str, port: int = 0, family: int = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host, host=self.address, port=port, family=family, proto=0, flags=0
            )
        ]

    async def close(self) -> None:
        return


async def test_a_name_that_changes_its_answer_after_the_check_is_still_refused(
    receiver: Any,
) -> None:
    async with HttpSender(resolver=MovingName("127.0.0.1")) as sender:
        for scheme in ("http", "https"):
            url = receiver.url.replace("127.0.0.1", "rebinding.invalid").replace("http", scheme)
            assert (
                await sender.send(url, headers=HEADERS, body=b"{}")
            ).outcome is AttemptOutcome.ADDRESS_REFUSED
    assert receiver.received == []


async def test_a_receiver_whose_name_moves_is_followed_under_steady_load() -> None:
    arrivals: dict[str, list[float]] = {"127.0.0.1": [], "127.0.0.2": []}
    connections = 0

    async def received(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n{}"):
                arrivals[writer.get_extra_info("sockname")[0]].append(time.monotonic())
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(received, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    moved = await asyncio.start_server(received, "127.0.0.2", port)
    name, seconds = MovingName("127.0.0.1"), 0.3
    async with (
        server,
        moved,
        HttpSender(allowed=LOOPBACK, resolver=name, name_seconds=seconds) as sender,
        asyncio.timeout(20),
    ):
        url = f"http://receiver.invalid:{port}/"
        for _ in range(20):
            await sender.send(url, headers=HEADERS, body=b"{}")
        name.address, moved_at = "127.0.0.2", time.monotonic()
        while len(arrivals["127.0.0.2"]) < 20:
            await sender.send(url, headers=HEADERS, body=b"{}")
    assert max(arrivals["127.0.0.1"]) < min(arrivals["127.0.0.2"])
    assert min(arrivals["127.0.0.2"]) - moved_at < seconds + 2
    assert connections < len(arrivals["127.0.0.1"]) / 2


async def test_why_nobody_is_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert (await send(f"http://127.0.0.1:{port}/")).outcome is AttemptOutcome.CONNECTION_REFUSED
    assert (await send("http://no-such-host.invalid/")).outcome is AttemptOutcome.NAME_NOT_FOUND


@pytest.mark.usefixtures("own_processes")
async def test_a_certificate_that_nobody_signed_is_not_trusted(tmp_path: Path) -> None:
    await asyncio.to_thread(make_certificate, tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    async with await asyncio.start_server(
        lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context
    ) as server:
        port = server.sockets[0].getsockname()[1]
        assert (
            await send(f"https://localhost:{port}/")
        ).outcome is AttemptOutcome.CERTIFICATE_NOT_TRUSTED


async def test_an_answer_that_does_not_come_is_timed_out(receiver: Any) -> None:
    released = receiver.hold()
    answer = await send(receiver.url, total_seconds=0.2)
    assert (answer.outcome, answer.status_code) == (AttemptOutcome.TIMED_OUT, None)
    assert 0.15 < answer.duration_seconds < 2
    released.set()


async def test_a_peer_that_hangs_up_or_talks_no_http_is_unreachable() -> None:
    async def babble(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.invalid ESMTP\r\n")

    async with raw_server(babble) as host:
        assert (await send(f"http://{host}/")).outcome is AttemptOutcome.UNREACHABLE
        assert (await send(f"https://{host}/")).outcome is AttemptOutcome.UNREACHABLE, "nor TLS"


async def test_of_an_endless_answer_20_kb_are_read() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"x" * 10_000)
        return response

    app = web.Application()
    app.router.add_post("/", endless)

    async with TestServer(app, host="127.0.0.1") as server:
        answer = await send(f"http://127.0.0.1:{server.port}/", total_seconds=3)
        assert (answer.outcome, len(answer.response)) == (
            AttemptOutcome.DELIVERED,
            RESPONSE_BYTES_MAX,
        )
        assert answer.duration_seconds < 2


async def test_the_status_counts_even_if_the_body_stalls() -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun")
        await reader.read()

    async with raw_server(stall) as host:
        answer = await send(f"http://{host}/", total_seconds=0.3)
    assert (answer.outcome, answer.response) == (AttemptOutcome.DELIVERED, b"begun")


async def test_a_compressed_answer_is_not_inflated(receiver: Any) -> None:
    bomb = zlib.compress(b"\0" * 1_000_000)

    async def compressed(_got: Any) -> web.StreamResponse:
        return web.Response(body=bomb, headers={"Content-Encoding": "deflate"})

    receiver.answer = compressed
    assert (await send(receiver.url)).response == bomb


async def test_retry_after_is_handed_on_and_cookies_are_not_stored(receiver: Any) -> None:
    receiver.statuses(429, **{"Retry-After": "17", "Set-Cookie": "track=1"})
    async with HttpSender(allowed=LOOPBACK) as sender:
        answer = await sender.send(receiver.url, headers=HEADERS, body=b"{}")
        await sender.send(receiver.url, headers=HEADERS, body=b"{}")
    assert answer.retry_after_seconds == 17
    assert "Cookie" not in receiver.received[1].headers


@contextlib.asynccontextmanager
async def connecting_proxy(answer: bytes = b"200 OK") -> AsyncIterator[tuple[str, list[str]]]:
    """Yield the URL of a proxy that takes CONNECT, and the targets that it was asked for."""
    asked: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            _, target, _ = head.split(b" ", 2)
            asked.append(target.decode())
            assert b"Proxy-Authorization: Basic " in head
            writer.write(b"HTTP/1.1 " + answer + b"\r\n\r\n")
            if answer.startswith(b"200"):
                await reader.readexactly(5)  # the TLS handshake of the sender

    async with raw_server(handle) as address:
        yield f"http://user:secret@{address}", asked


async def test_a_proxy_leads_to_the_public_internet_and_to_nothing_else(receiver: Any) -> None:
    async with connecting_proxy() as (proxy, asked):
        public = MovingName("93.184.215.14")
        async with HttpSender(allowed=LOOPBACK, resolver=public, proxy=proxy) as sender:
            url = "https://shop.example:8443/hook"
            assert (
                await sender.send(url, headers=HEADERS, body=b"{}")
            ).outcome is AttemptOutcome.UNREACHABLE, "it hung up within the handshake"
            assert asked == ["shop.example:8443"]
            assert (
                await sender.send(receiver.url, headers=HEADERS, body=b"{}")
            ).outcome is AttemptOutcome.DELIVERED, "an allowed network is reached directly"
            public.address = "10.0.0.1"
            assert (
                await sender.send(url, headers=HEADERS, body=b"{}")
            ).outcome is AttemptOutcome.ADDRESS_REFUSED
            assert len(asked) == 1


async def test_a_proxy_that_refuses_or_is_away_is_named() -> None:
    public = MovingName("93.184.215.14")
    async with connecting_proxy(b"407 Proxy Authentication Required") as (proxy, _):
        async with HttpSender(resolver=public, proxy=proxy) as sender:
            answer = await sender.send("https://shop.example/", headers=HEADERS, body=b"{}")
        assert answer.detail == "the proxy answered 407"
    async with HttpSender(resolver=public, proxy=proxy) as sender:
        answer = await sender.send("https://shop.example/", headers=HEADERS, body=b"{}")
    assert answer.detail == "the proxy does not answer"

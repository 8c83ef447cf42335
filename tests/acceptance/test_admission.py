"""Hostile and hungry clients of a real ingress do nothing to the webhooks of others."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from tests.acceptance.processes import BOOTSTRAP_KEY, RoleProcess, Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import ups_alert

HALF = b"POST /v1/webhooks/ups HTTP/1.1\r\nHost: statesvc\r\nContent-Le"
HALF_OPEN = 1_100
FILES = 1_024
FEW_FILES = (
    "bash",
    "-c",
    f'ulimit -n {FILES} && exec "$@"',
    "statesvc",
    sys.executable,
    "-m",
    "statesvc",
)
KEY = {"Authorization": f"Bearer {BOOTSTRAP_KEY}"}
OTHER = "127.0.0.2"
"""Another address of this machine, as another client has it."""


def scan(place: int) -> bytes:
    return ups_alert(f"1ZADMIT{place:09d}", "I/OT", day=3, minute=300).body


def refusals(role: RoleProcess) -> list[tuple[str, int]]:
    lines = [json.loads(line) for line in role.log.read_text().splitlines() if line.startswith("{")]
    return [(line["cause"], line["count"]) for line in lines if line["event"] == "refused"]


@asynccontextmanager
async def half_open(port: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open many connections with half a head each."""
    opened = []
    try:
        for _ in range(HALF_OPEN):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            opened.append((reader, writer))
            writer.write(HALF)
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.close()
        for _, writer in opened:
            with suppress(ConnectionError):
                await writer.wait_closed()


async def push(ingress: RoleProcess, place: int, *, address: str) -> int:
    connector = aiohttp.TCPConnector(local_addr=(address, 0))
    async with (
        aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=20), headers=KEY
        ) as session,
        session.post(f"{ingress.url}/v1/webhooks/ups", data=scan(place)) as answer,
    ):
        return answer.status


async def test_half_open_heads_leave_room_for_others_and_end(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service: Service = await service_maker(tmp_path, {"STATESVC_HEAD_SECONDS": "5"})
    async with service:
        ingress = await service.spawn("ingress", program=FEW_FILES)
        await service.ready(ingress)
        async with half_open(ingress.port) as readers:
            assert await push(ingress, 1, address=OTHER) == 200
            assert ("connections_of_address", 1) in refusals(ingress)
            async with asyncio.timeout(30):
                await asyncio.gather(*(_ended(reader) for reader in readers))
            assert await push(ingress, 2, address="127.0.0.1") == 200
        assert ("head_timeout", 1) in refusals(ingress)
        assert len(refusals(ingress)) < 10, "a line per kind and minute"
        async with service.session.get(ingress.metrics_url) as answer:
            exposed = await answer.text()
        counted = [
            float(line.rsplit(" ", 1)[1])
            for line in exposed.splitlines()
            if line.startswith("statesvc_refusals_total{")
        ]
        assert sum(counted) == HALF_OPEN
        assert await service.value("SELECT count(*) FROM statesvc.inbox") == 2


async def _ended(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        await reader.read()


BODIES = 1_000
COMPLETED = 40
MIB = 1024 * 1024


def large(place: int) -> bytes:
    return (b"%08d" % place).ljust(MIB, b"x")


def head(carrier_id: str, length: int) -> bytes:
    return (
        f"POST /v1/webhooks/{carrier_id} HTTP/1.1\r\nHost: statesvc\r\nContent-Length:"
        f" {length}\r\n\r\n".encode()
    )


async def status_of(reader: asyncio.StreamReader) -> int:
    async with asyncio.timeout(60):
        return int((await reader.readline()).split()[1])


async def test_a_thousand_large_bodies_wait_unread_in_their_order_and_small_webhooks_pass(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service: Service = await service_maker(
        tmp_path, {"STATESVC_INGRESS_MEMORY_BYTES_MAX": str(4 * MIB)}
    )
    async with service, AsyncExitStack() as stack:
        (ingress,) = await service.start("ingress")
        clients = []
        for place in range(BODIES):
            reader, writer = await asyncio.open_connection("127.0.0.1", ingress.port)
            stack.callback(writer.transport.abort)
            writer.write(head("fedex", MIB) + large(place)[:8_000])
            clients.append((reader, writer))
        for place in range(20):
            assert await push(ingress, place, address=OTHER) == 200

        async def complete(place: int) -> int:
            reader, writer = clients[place]
            writer.write(large(place)[8_000:])
            await writer.drain()
            return await status_of(reader)

        assert (
            await asyncio.gather(*(complete(place) for place in range(COMPLETED)))
            == [200] * COMPLETED
        )
        assert await push(ingress, 20, address=OTHER) == 200
        assert await service.value("SELECT count(*) FROM statesvc.inbox") == COMPLETED + 21
        assert "overloaded" not in ingress.log.read_text()


async def test_an_anonymous_body_of_17track_too_large_to_be_signed_inside_is_not_even_read(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service: Service = await service_maker(
        tmp_path, {"STATESVC_WEBHOOK_SECRET_17TRACK": "s", "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": None}
    )
    async with service:
        (ingress,) = await service.start("ingress")
        reader, writer = await asyncio.open_connection("127.0.0.1", ingress.port)
        writer.write(head("17track", MIB))
        assert await status_of(reader) == 401
        writer.transport.abort()
        many = b"{" + b",".join(b'"%06d":[{}]' % place for place in range(8_000)) + b"}"
        for _ in range(50):
            async with service.session.post(
                f"{ingress.url}/v1/webhooks/17track",
                data=many[: 128 * 1024],
                headers={"Authorization": ""},
            ) as answer:
                assert answer.status == 401
        assert ("bad_signature", 1) in refusals(ingress)

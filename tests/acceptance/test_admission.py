"""Hostile and hungry clients of a real ingress, and an api behind its port that freezes or dies, do
nothing to the webhooks of others.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import pytest

from tests.acceptance.processes import BOOTSTRAP_KEY, RoleProcess, Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.slow_request import slow_request
from tests.acceptance.stories import ups_alert
from tests.world.waiting import until

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
    async with await service_maker(tmp_path, {"STATESVC_HEAD_SECONDS": "5"}) as service:
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
    async with (
        await service_maker(
            tmp_path, {"STATESVC_INGRESS_MEMORY_BYTES_MAX": str(4 * MIB)}
        ) as service,
        AsyncExitStack() as stack,
    ):
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
    async with await service_maker(
        tmp_path, {"STATESVC_WEBHOOK_SECRET_17TRACK": "s", "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": None}
    ) as service:
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


Both = tuple[Service, RoleProcess, RoleProcess]


async def start(service: Service, role: str, folder: Path) -> RoleProcess:
    return await service.spawn(role, arguments=("--socket", str(folder / "api")))


@pytest.fixture
async def both(service_maker: ServiceMaker, tmp_path: Path) -> AsyncIterator[Both]:
    service: Service = await service_maker(tmp_path)
    with TemporaryDirectory(prefix="statesvc-") as folder:
        async with service:
            ingress = await start(service, "ingress", Path(folder))
            await until(lambda: answers(service, f"{ingress.url}/livez"))
            async with service.session.get(f"{ingress.url}/readyz") as answer:
                assert (answer.status, "api" in await answer.text()) == (503, True)
            api = await start(service, "api", Path(folder))
            await service.ready(ingress)
            yield service, ingress, api


async def answers(service: Service, url: str) -> bool:
    try:
        async with service.session.get(url):
            return True
    except aiohttp.ClientError:
        return False


async def push_by(session: aiohttp.ClientSession, ingress: RoleProcess, place: int) -> None:
    async with session.post(f"{ingress.url}/v1/webhooks/ups", data=scan(place)) as answer:
        assert answer.status == 200, await answer.text()


async def get(session: aiohttp.ClientSession, role: RoleProcess, path: str) -> tuple[int, str]:
    async with session.get(f"{role.url}{path}") as answer:
        return answer.status, await answer.text()


async def test_a_frozen_api_delays_no_webhook_of_any_client(both: Both) -> None:
    service, ingress, api = both
    # one connection for all: it has been at the api, as a load balancer's is
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=1), headers=service.session.headers
    ) as mixed:
        await push_by(mixed, ingress, 1)
        assert (await get(mixed, ingress, "/v1/shipments"))[0] == 200
        # an answer later than that one: by now the idle connection has gone back to ingress
        assert (await get(service.session, api, "/livez"))[0] == 200
        api.send(signal.SIGSTOP)
        try:
            await push_by(mixed, ingress, 2)
            for place in range(3, 6):
                await push_by(service.session, ingress, place)
            assert (await get(service.session, ingress, "/readyz"))[0] == 200
            waiting = asyncio.create_task(get(mixed, ingress, "/v1/queue"))
            await push_by(service.session, ingress, 6)
            assert not waiting.done()
        finally:
            api.send(signal.SIGCONT)
        assert (await waiting)[0] == 200
    assert await service.value("SELECT count(*) FROM statesvc.inbox") == 6


async def test_an_api_that_dies_takes_no_webhook_with_it_and_is_found_again(both: Both) -> None:
    service, ingress, api = both
    assert (await get(service.session, ingress, "/v1/shipments"))[0] == 200
    async with slow_request(ingress.port, "fedex", b"{}  ") as slow:
        api.kill()
        await api.process.wait()
        await push_by(service.session, ingress, 1)
        assert (await get(service.session, ingress, "/readyz"))[0] == 200
        status, text = await get(service.session, ingress, "/v1/shipments")
        assert (status, "api_unavailable" in text) == (503, True)
        assert await slow.finish() == 200
    folder = Path(
        next(argument for argument in _arguments(ingress) if argument.endswith("/api"))
    ).parent
    await start(service, "api", folder)

    async def is_found() -> bool:
        return (await get(service.session, ingress, "/v1/shipments"))[0] != 503

    await until(is_found)


async def test_a_stopping_ingress_answers_what_it_took_and_leaves_the_api_s_clients_alone(
    both: Both,
) -> None:
    service, ingress, _ = both
    async with (
        service.session.get(f"{ingress.url}/v1/stream") as stream,
        slow_request(ingress.port, "fedex", b"{}  ") as slow,
    ):
        assert stream.status == 200
        ingress.send(signal.SIGTERM)
        await until(lambda: '"stopping"' in ingress.log.read_text())
        assert await slow.finish() == 200
        assert await ingress.exit_code() == 0
        assert not stream.content.at_eof()
        assert stream.content.exception() is None


def _arguments(role: RoleProcess) -> list[str]:
    return Path(f"/proc/{role.process.pid}/cmdline").read_text().replace("\0", " ").split()

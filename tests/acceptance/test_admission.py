"""What hostile and hungry clients do to a real ingress: nothing to the webhooks of others."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from tests.acceptance.processes import BOOTSTRAP_KEY, RoleProcess, Service
from tests.acceptance.stories import ups_alert

ServiceMaker = Callable[..., Any]
HALF = b"POST /v1/webhooks/ups HTTP/1.1\r\nHost: statesvc\r\nContent-Le"
HALF_OPEN = 1_100
FILES = 1_024
FEW_FILES = ("bash", "-c", f'ulimit -n {FILES} && exec "$@"', "statesvc", sys.executable, "-m", "statesvc")
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
    """Many connections with half a head each."""
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
        aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=20), headers=KEY) as session,
        session.post(f"{ingress.url}/v1/webhooks/ups", data=scan(place)) as answer,
    ):
        return answer.status


async def test_half_open_heads_leave_room_for_others_and_end(service_maker: ServiceMaker, tmp_path: Path) -> None:
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
        async with service.session.get(f"{ingress.url}/metrics") as answer:
            exposed = await answer.text()
        counted = [float(line.rsplit(" ", 1)[1]) for line in exposed.splitlines() if line.startswith("statesvc_refusals_total{")]
        assert sum(counted) == HALF_OPEN
        assert await service.value("SELECT count(*) FROM statesvc.inbox") == 2


async def _ended(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        await reader.read()

"""Ingress and api of one machine behind one port, as real processes: what happens to the api does
not happen to webhooks.
"""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import pytest

from tests.acceptance.processes import RoleProcess, Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.slow_request import slow_request
from tests.acceptance.stories import ups_alert
from tests.world.waiting import until

Both = tuple[Service, RoleProcess, RoleProcess]


def scan(place: int) -> bytes:
    return ups_alert(f"1ZPORT{place:010d}", "I/OT", day=3, minute=300).body


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


async def push(session: aiohttp.ClientSession, ingress: RoleProcess, place: int) -> None:
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
        await push(mixed, ingress, 1)
        assert (await get(mixed, ingress, "/v1/shipments"))[0] == 200
        # an answer later than that one: by now the idle connection has gone back to ingress
        assert (await get(service.session, api, "/livez"))[0] == 200
        api.send(signal.SIGSTOP)
        try:
            await push(mixed, ingress, 2)
            for place in range(3, 6):
                await push(service.session, ingress, place)
            assert (await get(service.session, ingress, "/readyz"))[0] == 200
            waiting = asyncio.create_task(get(mixed, ingress, "/v1/queue"))
            await push(service.session, ingress, 6)
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
        await push(service.session, ingress, 1)
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

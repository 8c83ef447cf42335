"""The database goes away under load and comes back: 503 meanwhile, nothing acknowledged is lost."""

import asyncio
import time
from pathlib import Path

import aiohttp
import pytest

from statesvc.database.embedded import EmbeddedServer
from statesvc.database.migrator import migrate
from tests.acceptance.processes import Service, until_false
from tests.acceptance.stories import Message, messages
from tests.world import pgbouncer
from tests.world.ports import free_port

AFTERWARDS = 200
"""Messages that are acknowledged after the last restart."""


@pytest.mark.usefixtures("own_processes")
async def test_a_restart_of_the_database_loses_nothing_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    server = EmbeddedServer(
        tmp_path / "data", tcp_port=free_port(), overrides={"shared_buffers": "64MB"}
    )
    dsns = await asyncio.to_thread(server.start)
    try:
        await migrate(dsns.owner, dsns.service)
        async with pgbouncer.between(dsns.service) as settings:
            service = Service(
                service_dsn=dsns.service, owner_dsn=dsns.owner, folder=tmp_path, settings=settings
            )
            async with service:
                await service.start("api", "worker", "worker")
                await _restart_under_load(service, server)
    finally:
        await asyncio.to_thread(server.stop)


async def _restart_under_load(service: Service, server: EmbeddedServer) -> None:
    waiting = messages(3000, seed=3)
    acknowledged: set[str] = set()
    refused: list[float] = []
    stopping = asyncio.Event()

    async def client() -> None:
        while waiting and not stopping.is_set():
            message = waiting.pop()
            # awaited before the next message is taken
            await until_false(lambda: _refused(message))  # noqa: B023
            await asyncio.sleep(0.005)

    async def _refused(message: Message) -> bool:
        started = time.perf_counter()
        try:
            status, answer = await service.webhook(message.carrier_id, message.body)
        except aiohttp.ClientError:
            return True
        if status == 503:
            refused.append(time.perf_counter() - started)
            return True
        assert status == 200
        acknowledged.add(answer["message_id"])
        return False

    clients = [asyncio.create_task(client()) for _ in range(8)]
    await asyncio.sleep(1)
    await asyncio.to_thread(server.stop)
    await asyncio.sleep(0.5)
    status, problem = await service.get("/v1/shipments/ups/1Z0")
    assert (status, problem["code"]) == (503, "database_unavailable")
    await asyncio.to_thread(server.start)
    await asyncio.sleep(0.5)
    await asyncio.to_thread(server.restart, immediate=True)
    before = len(acknowledged)
    async with asyncio.timeout(60):
        while len(acknowledged) < before + AFTERWARDS:  # noqa: ASYNC110 - the clients count
            await asyncio.sleep(0.05)
    stopping.set()
    await asyncio.gather(*clients)
    assert refused
    assert max(refused) < 3
    await service.drained(90)
    settled = {str(row[0]) for row in await service.rows("SELECT message_id FROM statesvc.message")}
    assert acknowledged <= settled
    twice = (
        "SELECT count(*) FROM (SELECT carrier_id, event_id FROM statesvc.event GROUP BY 1, 2 HAVING"
        " count(*) > 1) d"
    )
    assert await service.value(twice) == 0

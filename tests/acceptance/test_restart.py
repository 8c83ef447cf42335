"""The database goes away under load and comes back: 503 meanwhile, nothing acknowledged is lost."""

import asyncio
import time
from pathlib import Path

import pytest

from statesvc.database.embedded import EmbeddedServer
from statesvc.database.migrator import migrate
from tests.acceptance.all_roles import (
    all_end_and_nothing_is_lost,
    all_roles,
    everything_works,
    well_again,
)
from tests.acceptance.processes import Service
from tests.acceptance.steady_pushes import steady_pushes
from tests.acceptance.stories import ups_alert
from tests.world import pgbouncer
from tests.world.ports import free_port


# five roles, and a server that starts three times
@pytest.mark.timeout(400)
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
                service_dsn=dsns.service,
                owner_dsn=dsns.owner,
                folder=tmp_path,
                settings=settings,
                forks=True,
            )
            async with all_roles(service) as (roles, subscriber):
                async with steady_pushes(service, roles[0], per_second=100) as pushes:
                    await everything_works(service, subscriber, pushes)
                    await asyncio.to_thread(server.stop)
                    await asyncio.sleep(0.5)
                    began = time.monotonic()
                    body = ups_alert("1ZAWAY0000000001", "I/OT", day=3, minute=300).body
                    assert (await service.webhook("ups", body))[0] == 503
                    assert time.monotonic() - began < 3, "before the carrier gives up"
                    await asyncio.to_thread(server.start)
                    await asyncio.sleep(0.5)
                    await asyncio.to_thread(server.restart, immediate=True)
                    await well_again(pushes, time.monotonic())
                    await everything_works(service, subscriber, pushes)
                await all_end_and_nothing_is_lost(service, roles, pushes)
    finally:
        await asyncio.to_thread(server.stop)

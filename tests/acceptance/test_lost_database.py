"""A database that goes silent, only reads or restarts under load: each role leaves it, comes back to
it, and nothing acknowledged is lost.
"""

import asyncio
import os
import re
import time
from functools import partial
from pathlib import Path

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from statesvc.database.embedded import EmbeddedServer
from statesvc.database.migrator import migrate
from tests.acceptance.all_roles import (
    SHORT_WAITS,
    all_are_ready,
    all_end_and_nothing_is_lost,
    all_roles,
    everything_works,
    unready,
    well_again,
)
from tests.acceptance.processes import RoleProcess, Service, until_false
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.steady_pushes import steady_pushes
from tests.acceptance.stories import ups_alert
from tests.soak.proxy import proxy_to
from tests.world import pgbouncer
from tests.world.ports import free_port
from tests.world.postgres import Server

# five roles, and faults that last for seconds
pytestmark = pytest.mark.timeout(400)

PER_SECOND = float(os.environ.get("STATESVC_TEST_PUSHES_PER_SECOND", "30"))
READ_ONLY_SECONDS = float(os.environ.get("STATESVC_TEST_READ_ONLY_SECONDS", "0"))
"""Beyond the moment at which all roles have noticed."""
NOTICED_SECONDS_MAX = 10.0
WRITES_AGAIN_SECONDS_MAX = 5.0
ENDED = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"


async def test_a_network_that_acknowledges_and_never_answers(
    service_maker: ServiceMaker, server: Server, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path)
    async with proxy_to(int(str(conninfo_to_dict(server.service_dsn)["port"]))) as proxy:
        through = make_conninfo(service.service_dsn, host="127.0.0.1", port=proxy.port)
        async with all_roles(service, DATABASE_URL=through, **SHORT_WAITS) as (roles, subscriber):
            async with steady_pushes(service, roles[0], per_second=PER_SECOND) as pushes:
                await everything_works(service, subscriber, pushes)
                since = time.monotonic()
                proxy.swallow()
                await well_again(pushes, since)
                await everything_works(service, subscriber, pushes)
                await all_are_ready(service, roles)
            # once more, and now they are to end
            proxy.swallow()
            await all_end_and_nothing_is_lost(service, roles, pushes)


@pytest.mark.parametrize("behind_pooler", [False, True])
async def test_a_database_that_only_reads_for_a_while(
    service_maker: ServiceMaker, server: Server, tmp_path: Path, *, behind_pooler: bool
) -> None:
    service = await service_maker(tmp_path, behind_pooler=behind_pooler)
    name = conninfo_to_dict(service.service_dsn)["dbname"]
    of_database, of_role = f'DATABASE "{name}"', f'ROLE statesvc_service IN DATABASE "{name}"'
    async with (
        all_roles(service) as (roles, subscriber),
        await AsyncConnection.connect(server.superuser_dsn, autocommit=True) as admin,
    ):
        async with steady_pushes(service, roles[0], per_second=PER_SECOND) as pushes:
            await everything_works(service, subscriber, pushes)
            for target in (of_database,) if behind_pooler else (of_database, of_role):
                await admin.execute(f"ALTER {target} SET default_transaction_read_only = on")
                await admin.execute(ENDED, (name,))
                async with asyncio.timeout(NOTICED_SECONDS_MAX):
                    for role in roles:
                        await until_false(partial(says_nothing_of_it, service, role))
                await asyncio.sleep(READ_ONLY_SECONDS)
                since = time.monotonic()
                await admin.execute(f"ALTER {target} RESET default_transaction_read_only")
                await well_again(pushes, since, within=WRITES_AGAIN_SECONDS_MAX)
                await everything_works(service, subscriber, pushes)
        await all_end_and_nothing_is_lost(service, roles, pushes)


async def says_nothing_of_it(service: Service, role: RoleProcess) -> bool:
    return re.search(r"read-only|takes no writes", " ".join(await unready(service, role))) is None


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

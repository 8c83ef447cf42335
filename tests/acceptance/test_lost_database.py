"""A database that goes silent, or only reads, in every way that is no clean end: each role leaves it, and nothing acknowledged is lost."""

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.acceptance.processes import RoleProcess, Service, until_false
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.steady_pushes import SteadyPushes, steady_pushes
from tests.soak.proxy import proxy_to
from tests.world.postgres import Server

# five roles, and faults that last for seconds
pytestmark = pytest.mark.timeout(400)

PER_SECOND = float(os.environ.get("STATESVC_TEST_PUSHES_PER_SECOND", "30"))
READ_ONLY_SECONDS = float(os.environ.get("STATESVC_TEST_READ_ONLY_SECONDS", "5"))
WELL_SECONDS = 3.0
AGAIN_SECONDS_MAX = 15.0
WRITES_AGAIN_SECONDS_MAX = 5.0
WORK_SECONDS_MAX = 90.0
"""A worker's statement may take 20 s, so its connection is given up after 22."""
GRACE_SECONDS = 33
ROLES = ("ingress", "api", "worker", "notifier", "sealer")
ENDED = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
JSON = {"Content-Type": "application/json"}
IDLE = (
    "SELECT pid FROM pg_stat_activity WHERE datname = %s AND state = 'idle' AND application_name LIKE 'statesvc %%'"
    " AND application_name <> 'statesvc sealer'"
)
"""A stopped lead keeps its lock, whatever the sealers do: tests/statesvc/sealer/test_sealer_loop.py."""


class Subscriber:
    """Counts what it is sent."""

    def __init__(self) -> None:
        self.received = 0

    async def take(self, _request: web.Request) -> web.Response:
        self.received += 1
        return web.Response(status=204)


@asynccontextmanager
async def all_roles(service: Service, **settings: str) -> AsyncIterator[tuple[list[RoleProcess], Subscriber]]:
    """Start all roles, with a subscriber to everything."""
    subscriber = Subscriber()
    app = web.Application()
    app.router.add_post("/", subscriber.take)
    async with TestServer(app) as server, service:
        roles = await service.start(*ROLES, **settings)
        status, created = await service.post("/v1/subscriptions", json.dumps({"url": str(server.make_url("/"))}), **JSON)
        assert status == 201, created
        yield roles, subscriber


async def everything_works(service: Service, subscriber: Subscriber, pushes: SteadyPushes) -> None:
    """Check that what comes from now on goes through: from the push to the subscriber, and from the entry to the checkpoint."""
    before, sealed, acknowledged = subscriber.received, await size(service), len(pushes.acknowledged)
    async with asyncio.timeout(WORK_SECONDS_MAX):
        await until_false(lambda: same(subscriber.received <= before))
        await until_false(lambda: size_is(service, sealed))
        await until_false(lambda: same(len(pushes.acknowledged) <= acknowledged))


async def all_end_and_nothing_is_lost(service: Service, roles: list[RoleProcess], pushes: SteadyPushes) -> None:
    """Check that all end within the grace; what was left a new worker takes."""
    for role in roles:
        role.send(signal.SIGTERM)
    for role in roles:
        assert await role.exit_code(GRACE_SECONDS) == 0, role.log.read_text()[-4000:]
    await service.start("worker")
    await service.drained(90)
    settled = {str(row[0]) for row in await service.rows("SELECT message_id FROM statesvc.message")}
    assert pushes.acknowledged <= settled
    twice = "SELECT count(*) FROM (SELECT carrier_id, event_id FROM statesvc.event GROUP BY 1, 2 HAVING count(*) > 1) d"
    assert await service.value(twice) == 0


async def size(service: Service) -> int:
    found: int = await service.value("SELECT coalesce(max(tree_size), 0) FROM statesvc.checkpoint")
    return found


async def size_is(service: Service, before: int) -> bool:
    return await size(service) <= before


async def same(value: bool) -> bool:  # noqa: FBT001 - so that it can be awaited
    return value


async def unready(service: Service, role: RoleProcess) -> list[str]:
    async with service.session.get(f"{role.url}/readyz") as answer:
        return [] if answer.status == 200 else list((await answer.json())["reasons"])


async def all_are_ready(service: Service, roles: Sequence[RoleProcess]) -> None:
    """Wait until each role is ready: each of its connections notices for itself that its session is dead."""
    ends = time.monotonic() + AGAIN_SECONDS_MAX
    while reasons := [found for role in roles if (found := await unready(service, role))]:
        assert time.monotonic() < ends, reasons
        await asyncio.sleep(0.1)


async def test_a_network_that_acknowledges_and_never_answers(service_maker: ServiceMaker, server: Server, tmp_path: Path) -> None:
    service = await service_maker(tmp_path)
    async with proxy_to(int(str(conninfo_to_dict(server.service_dsn)["port"]))) as proxy:
        through = make_conninfo(service.service_dsn, host="127.0.0.1", port=proxy.port)
        async with all_roles(service, DATABASE_URL=through) as (roles, subscriber):
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


async def test_sessions_that_were_stopped_while_idle(service_maker: ServiceMaker, server: Server, tmp_path: Path) -> None:
    if "TEST_DATABASE_URL" in os.environ:
        pytest.skip("that server's processes may run elsewhere")
    service = await service_maker(tmp_path)
    async with all_roles(service) as (roles, subscriber):
        async with steady_pushes(service, roles[0], per_second=PER_SECOND) as pushes:
            await everything_works(service, subscriber, pushes)
        await service.drained()
        await until_false(lambda: service.value("SELECT EXISTS (SELECT FROM statesvc.outbox) OR EXISTS (SELECT FROM statesvc.unsealed)"))
        async with await AsyncConnection.connect(server.superuser_dsn, autocommit=True) as admin:
            name = conninfo_to_dict(service.service_dsn)["dbname"]
            idle = [pid for (pid,) in await (await admin.execute(IDLE, (name,))).fetchall()]
        assert len(idle) >= len(ROLES)
        with stopped(idle):
            async with steady_pushes(service, roles[0], per_second=PER_SECOND) as more:
                since = time.monotonic()
                await well_again(more, since)
                await everything_works(service, subscriber, more)
                await all_are_ready(service, roles)
            await all_end_and_nothing_is_lost(service, roles, more)


@pytest.mark.parametrize("of", ["database", "role", "database behind a pooler"])
async def test_a_database_that_only_reads_for_a_while(service_maker: ServiceMaker, server: Server, tmp_path: Path, of: str) -> None:
    service = await service_maker(tmp_path, **({"behind_pooler": True} if "pooler" in of else {}))
    async with all_roles(service) as (roles, subscriber):
        async with steady_pushes(service, roles[0], per_second=PER_SECOND) as pushes:
            await everything_works(service, subscriber, pushes)
            name = conninfo_to_dict(service.service_dsn)["dbname"]
            target = f'DATABASE "{name}"' if of != "role" else f'ROLE statesvc_service IN DATABASE "{name}"'
            async with await AsyncConnection.connect(server.superuser_dsn, autocommit=True) as admin:
                await admin.execute(f"ALTER {target} SET default_transaction_read_only = on")
                await admin.execute(ENDED, (name,))
                await asyncio.sleep(READ_ONLY_SECONDS)
                reasons = [await unready(service, role) for role in roles]
                since = time.monotonic()
                await admin.execute(f"ALTER {target} RESET default_transaction_read_only")
            assert all(re.search(r"read-only|takes no writes", " ".join(each)) for each in reasons), reasons
            await well_again(pushes, since, within=WRITES_AGAIN_SECONDS_MAX)
            await everything_works(service, subscriber, pushes)
        await all_end_and_nothing_is_lost(service, roles, pushes)


async def well_again(pushes: SteadyPushes, since: float, *, within: float = AGAIN_SECONDS_MAX) -> None:
    """Wait until every push is acknowledged again."""
    await pushes.well_for(WELL_SECONDS)
    seconds = pushes.seconds_until_well(since)
    print(f"{pushes.refused(since)} pushes were not acknowledged, the last {seconds:.1f} s after")  # noqa: T201
    assert seconds < within


@contextmanager
def stopped(backends: list[int]) -> Iterator[None]:
    """Stop processes of the server for the time of the block."""
    for pid in backends:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in backends:
            os.kill(pid, signal.SIGCONT)

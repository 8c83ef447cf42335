"""All roles of a service under steady pushes, with a subscriber to everything: whether they work,
recover, and end without a loss.
"""

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.acceptance.processes import RoleProcess, Service
from tests.acceptance.steady_pushes import SteadyPushes
from tests.world.waiting import until

ROLES = ("ingress", "api", "worker", "notifier", "sealer")
WELL_SECONDS = 2.0
AGAIN_SECONDS_MAX = 15.0
WORK_SECONDS_MAX = 90.0
GRACE_SECONDS = 33
SHORT_WAITS = {
    "STATESVC_WORKER_STATEMENT_SECONDS": "2",
    "STATESVC_WORKER_LOCK_SECONDS": "1",
    "STATESVC_WORKER_IDLE_IN_TRANSACTION_SECONDS": "2",
    "STATESVC_WORKER_SWEEP_SECONDS": "4",
    "STATESVC_NOTIFIER_SWEEP_SECONDS": "4",
    "STATESVC_SEALER_SWEEP_SECONDS": "4",
}
"""Of worker, notifier and sealer: a connection that is silent is given up after 4 s, and what a
silent listener did not hear is found
after 4 s.
"""
JSON = {"Content-Type": "application/json"}


class Subscriber:
    """Counts what it is sent."""

    def __init__(self) -> None:
        self.received = 0

    async def take(self, _request: web.Request) -> web.Response:
        self.received += 1
        return web.Response(status=204)


@asynccontextmanager
async def all_roles(
    service: Service, of_role: Mapping[str, Mapping[str, str]] | None = None, /, **settings: str
) -> AsyncIterator[tuple[list[RoleProcess], Subscriber]]:
    """Start all roles, with a subscriber to everything."""
    subscriber = Subscriber()
    app = web.Application()
    app.router.add_post("/", subscriber.take)
    async with TestServer(app) as server, service:
        roles = [
            await service.spawn(name, {**settings, **(of_role or {}).get(name, {})})
            for name in ROLES
        ]
        await asyncio.gather(*map(service.ready, roles))
        status, created = await service.post(
            "/v1/subscriptions", json.dumps({"url": str(server.make_url("/"))}), **JSON
        )
        assert status == 201, created
        yield roles, subscriber


async def everything_works(service: Service, subscriber: Subscriber, pushes: SteadyPushes) -> None:
    """Check that what comes from now on goes through: from the push to the subscriber, and from the
    entry to the checkpoint.
    """
    before, acknowledged = subscriber.received, len(pushes.acknowledged)
    sealed = await service.value("SELECT coalesce(max(tree_size), 0) FROM statesvc.checkpoint")
    grown = "SELECT coalesce(max(tree_size), 0) > %s FROM statesvc.checkpoint"
    await until(lambda: subscriber.received > before, WORK_SECONDS_MAX)
    await until(lambda: service.value(grown, sealed), WORK_SECONDS_MAX)
    await until(lambda: len(pushes.acknowledged) > acknowledged, WORK_SECONDS_MAX)


async def all_end_and_nothing_is_lost(
    service: Service, roles: list[RoleProcess], pushes: SteadyPushes
) -> None:
    """Check that all end within the grace; what was left a new worker takes."""
    for role in roles:
        role.send(signal.SIGTERM)
    for role in roles:
        assert await role.exit_code(GRACE_SECONDS) == 0, role.log.read_text()[-4000:]
    await service.start("worker")
    await service.drained(90)
    settled = {str(row[0]) for row in await service.rows("SELECT message_id FROM statesvc.message")}
    assert pushes.acknowledged <= settled
    twice = (
        "SELECT count(*) FROM (SELECT carrier_id, event_id FROM statesvc.event GROUP BY 1, 2 HAVING"
        " count(*) > 1) d"
    )
    assert await service.value(twice) == 0


async def unready(service: Service, role: RoleProcess) -> list[str]:
    async with service.session.get(f"{role.url}/readyz") as answer:
        return [] if answer.status == 200 else list((await answer.json())["reasons"])


async def all_are_ready(service: Service, roles: Sequence[RoleProcess]) -> None:
    """Wait until each role is ready: each of its connections notices for itself
    that its session is dead.
    """
    ends = time.monotonic() + AGAIN_SECONDS_MAX
    while reasons := [found for role in roles if (found := await unready(service, role))]:
        assert time.monotonic() < ends, reasons
        await asyncio.sleep(0.1)


async def well_again(
    pushes: SteadyPushes, since: float, *, within: float = AGAIN_SECONDS_MAX
) -> None:
    """Wait until every push is acknowledged again."""
    await pushes.well_for(WELL_SECONDS)
    seconds = pushes.seconds_until_well(since)
    print(f"{pushes.refused(since)} pushes were not acknowledged, the last {seconds:.1f} s after")  # noqa: T201
    assert seconds < within

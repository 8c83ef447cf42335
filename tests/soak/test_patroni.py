"""Failovers of a Patroni cluster of three under load: what was acknowledged stays, each event takes
effect once, roles reconnect.

`STATESVC_SOAK_FAILOVERS` (3) of each kind, `STATESVC_SOAK_RATE` pushes a second;
`STATESVC_SOAK_FRONT` (`haproxy`): with `hosts` libpq's list of hosts leads the
service to the primary.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from tests.acceptance.processes import until_false
from tests.bench.report import percentile
from tests.soak.crew import Post
from tests.soak.outages import AWAY, note_outages
from tests.soak.patroni import PatroniCluster, patroni_cluster
from tests.soak.story import Story, told
from tests.world.programs import required, required_patroni

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("own_processes")]

FAILOVERS: Final = int(os.environ.get("STATESVC_SOAK_FAILOVERS", "3"))
FRONT: Final = os.environ.get("STATESVC_SOAK_FRONT", "haproxy")
AHEAD_BYTES: Final = 64 * 1024 * 1024
"""More than the sockets between two machines hold."""
ADDRESSES: Final = ("127.0.0.1", "127.0.0.2")
"""Addresses of the machines that run roles: each has one of each."""
ROLES: Final = ("ingress", "api", "worker", "notifier", "sealer")
CREW: Final = [
    Post(role=role, settings={"STATESVC_HOST": address}) for address in ADDRESSES for role in ROLES
]


@asynccontextmanager
async def cluster() -> AsyncIterator[PatroniCluster]:
    for program, package in (("etcd", "etcd-server"), ("haproxy", "haproxy"), ("ip", "iproute2")):
        required(program, package)
    required_patroni()
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    async with patroni_cluster() as three:
        yield three


async def killed(three: PatroniCluster) -> None:
    """Cut the machine's power, and give it back once it was replaced."""
    primary = await three.primary()
    primary.kill()
    await three.replaced(primary)
    primary.boot()


async def killed_ahead(three: PatroniCluster) -> None:
    """Kill the primary when it had written, and its standbys had not, what no ACK waited for: more
    than Patroni allows by default.
    """
    primary = await three.primary()
    standbys = [machine for machine in three.machines if machine is not primary]
    for machine in standbys:
        machine.freeze_receiver()
    async with await AsyncConnection.connect(
        three.hosts.superuser_dsn, autocommit=True
    ) as connection:
        await connection.execute(
            "SELECT pg_logical_emit_message(false, 'soak', repeat('x', %s), true)", (AHEAD_BYTES,)
        )

    async def is_unpublished() -> bool:
        lags = [member.get("lag") for member in await three.members()]
        return not any(isinstance(lag, int) and lag > AHEAD_BYTES / 2 for lag in lags)

    await until_false(is_unpublished)
    primary.kill()
    for machine in standbys:
        machine.wake()
    await three.replaced(primary)
    primary.boot()


async def cut_off(three: PatroniCluster) -> None:
    """Cut the machine off: it runs on, and finds out by itself. Healed once it was replaced."""
    primary = await three.primary()
    primary.cut_off()
    await three.replaced(primary)
    primary.reconnect()


async def frozen(three: PatroniCluster) -> None:
    """Freeze the machine; it wakes up as the primary that it was, when another one is."""
    primary = await three.primary()
    primary.freeze()
    await three.replaced(primary)
    primary.wake()


async def switched_over(three: PatroniCluster) -> None:
    """Switch over, as an operator does for maintenance."""
    await three.switch_over()


@pytest.mark.parametrize(
    "happens",
    [killed, killed_ahead, cut_off, frozen, switched_over],
    ids=lambda happens: happens.__name__,
)
async def test_failovers_lose_and_double_nothing(happens: Any, tmp_path: Path) -> None:
    async with cluster() as three:
        seen_as = three.proxied if FRONT == "haproxy" else three.hosts
        async with told(
            f"patroni: primary {happens.__name__}",
            three.hosts,
            tmp_path,
            posts=CREW,
            seen_as=seen_as,
            forks=True,
        ) as story:
            for _ in range(FAILOVERS):
                await asyncio.sleep(story.rng.uniform(2, 4))
                with story.disturbance(happens.__name__):
                    await happens(three)
                await three.settled()
            await asyncio.sleep(3)
            story.notes.append(_gaps(story))


def _gaps(story: Story) -> str:
    """Return the longest time without any ACK of each failover.

    A busy machine makes fewer pushes a second than it was asked for.
    """
    begun = [disturbance.began for disturbance in story.watch.disturbances]
    gaps = []
    for began, until in pairwise([*begun, time.monotonic()]):
        acks = [at for at in story.carriers.sent.acked_at if began - 1 <= at < until]
        gaps.append(max(after - before for before, after in pairwise([*acks, until])))
    gaps.sort()
    pauses = (
        f"median {median(gaps):.1f} s, p99 {percentile(gaps, 0.99):.1f} s, longest {gaps[-1]:.1f} s"
    )
    made = story.carriers.sent.pushes / (time.monotonic() - story.begun)
    return (
        f"{len(gaps)} failovers behind {FRONT}, {made:.0f} pushes/s made; without any ACK: {pauses}"
    )


@pytest.mark.parametrize(
    "happens", [switched_over, killed], ids=lambda happens: f"spooled_{happens.__name__}"
)
async def test_with_a_spool_no_push_is_refused(happens: Any, tmp_path: Path) -> None:
    async with cluster() as three:
        async with told(
            f"patroni with a spool: primary {happens.__name__}",
            three.hosts,
            tmp_path,
            posts=CREW,
            settings={"STATESVC_SPOOL_URL": f"file://{tmp_path}/spool"},
            seen_as=three.proxied if FRONT == "haproxy" else three.hosts,
            forks=True,
            tries_once=True,
        ) as story:
            story.at_end.append(note_outages)
            for _ in range(FAILOVERS):
                await asyncio.sleep(5)
                with story.disturbance(AWAY):
                    await happens(three)
                await three.settled()
                await story.caught_up(within_seconds=60)
        assert set(story.carriers.sent.answers) == {200}

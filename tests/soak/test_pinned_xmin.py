"""A session that sits idle in its transaction keeps every dead row alive for five minutes;
the queue must not care.

The load is put straight into the inbox through `statesvc.put`, as ingress does it: sealed, in
groups, 800 one-scan messages a second. So two cores bear it beside the worker, and nothing but
the inbox is measured.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.bodies.sealed_message import seal_message
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from statesvc.ingress.group_commit import put
from statesvc.queue.claim import ClaimRequest, claim
from tests.acceptance.processes import MASTER_KEY, Service, running
from tests.bench.report import percentile
from tests.bench.traffic import Push, alerts
from tests.soak.server import SoakServer
from tests.soak.story import SECONDS

RATE: Final = 800
GROUP: Final = 80
CLAIMS: Final = 60
THROUGHPUT_MIN: Final = 0.95
CLAIM_SECONDS_MAX: Final = 0.005
_ASKED: Final = ClaimRequest(worker="soak", limit=64, lease_seconds=600, bytes_max=4 * 1024 * 1024)
_PICKUPS: Final = """
SELECT extract(epoch FROM m.settled_at - m.received_at)::float8 FROM statesvc.message m WHERE m.settled_at > %s ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Phase:
    """Messages that were settled, how fast, and how long each took."""

    settled_per_second: float
    pickups: list[float]

    def __str__(self) -> str:
        p50, p99 = percentile(self.pickups, 0.5), percentile(self.pickups, 0.99)
        return (
            f"{self.settled_per_second:,.0f} messages/s settled, received to settled p50"
            f" {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms"
        )


@pytest.mark.soak
async def test_a_pinned_xmin_slows_neither_the_queue_nor_a_claim(
    own_server: SoakServer, tmp_path: Path
) -> None:
    dsns = own_server.dsns
    service = Service(
        service_dsn=dsns.service_dsn,
        owner_dsn=dsns.owner_dsn,
        folder=tmp_path,
        settings={"STATESVC_LOG_LEVEL": "warning"},
    )
    async with (
        running(service, "worker"),
        await AsyncConnection.connect(dsns.service_dsn, autocommit=True) as connection,
    ):
        connection.prepare_threshold = 2
        keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
        phases = [alerts(round(RATE * SECONDS / 2), series=series) for series in range(2)]
        usual = await _phase(service, connection, keyring, phases[0])
        async with _pinned(dsns.superuser_dsn):
            pinned = await _phase(service, connection, keyring, phases[1])
            await _stop(service)
            await _put(connection, keyring, alerts(2 * CLAIMS * _ASKED.limit, series=2))
            pages = await _claim_pages(connection)
            seconds = await _claim_times(connection)
            dead = await service.value(
                "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid ="
                " 'statesvc.inbox'::regclass"
            )
    share = pinned.settled_per_second / usual.settled_per_second
    sys.stdout.write(
        f"\npinned xmin: {RATE} messages/s put for {SECONDS / 2:.0f} s without, then with it\n "
        f" without: {usual}\n  with: {pinned} ({share:.1%})\n  claim of {_ASKED.limit} beside"
        f" {dead:,} dead rows: median of {CLAIMS} {median(seconds) * 1e3:.2f} ms, slowest"
        f" {max(seconds) * 1e3:.2f} ms; {pages:,} pages read\n"
    )
    assert share >= THROUGHPUT_MIN
    assert median(seconds) <= CLAIM_SECONDS_MAX


async def _phase(
    service: Service, connection: AsyncConnection[Any], keyring: Keyring, pushes: Iterator[Push]
) -> Phase:
    begun_at = await service.value("SELECT statesvc.clock()")
    begun = due = time.monotonic()
    while await _put(connection, keyring, islice(pushes, GROUP)):
        due += GROUP / RATE
        await asyncio.sleep(due - time.monotonic())
    await service.drained(120)
    seconds = time.monotonic() - begun
    pickups = [row[0] for row in await service.rows(_PICKUPS, begun_at)]
    return Phase(len(pickups) / seconds, pickups)


async def _put(connection: AsyncConnection[Any], keyring: Keyring, pushes: Iterator[Push]) -> int:
    """Seal and store one group; return its size.

    The worker finds it by its wake-up, as after an ACK.
    """
    group = [seal_message(keyring, carrier_id, body, "{}") for carrier_id, body in pushes]
    if group:
        await put(connection, group)
        await connection.execute("SELECT pg_notify('statesvc_inbox', '')")
    return len(group)


async def _stop(service: Service) -> None:
    for role in service.roles:
        role.process.terminate()
        assert await role.exit_code() == 0


async def _claim_pages(connection: AsyncConnection[Any]) -> int:
    """Return what a claim reads, in pages of 8 kB: a figure that owes nothing to the machine."""
    query = (
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM statesvc.claim('soak', %s, '10"
        " minutes', 'any')"
    )
    row = await (await connection.execute(query, (_ASKED.limit,))).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


async def _claim_times(connection: AsyncConnection[Any]) -> list[float]:
    seconds = []
    for place in range(CLAIMS + 5):
        started = time.perf_counter()
        messages = (await claim(connection, _ASKED)).messages
        if place >= 5:
            # the first few are planned and prepared
            seconds.append(time.perf_counter() - started)
        assert len(messages) == _ASKED.limit
    return seconds


@asynccontextmanager
async def _pinned(dsn: str) -> AsyncIterator[None]:
    """Hold a session idle in a transaction whose snapshot is as old as the block."""
    async with await AsyncConnection.connect(dsn, autocommit=True) as idle, idle.transaction():
        await idle.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await idle.execute("SELECT count(*) FROM statesvc.lane")
        yield

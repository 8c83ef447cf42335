"""One carrier floods; the others must not notice."""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from statesvc.addons.demo.dialects import DIALECTS
from statesvc.addons.demo.parcels import invent
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from tests.acceptance.processes import MASTER_KEY, Service, running
from tests.bench.claim import FILL, LANES, time_claims
from tests.bench.inbox import put_all
from tests.bench.report import percentile
from tests.bench.server import Place
from tests.bench.traffic import alerts
from tests.node.node_worker import start_worker
from tests.soak.server import SoakServer
from tests.soak.story import SECONDS

RUNS: Final = 5
FLOOD: Final = round(100_000 * min(1.0, SECONDS / 600))
IDLE_SECONDS: Final = SECONDS / RUNS / 3
FLOODER: Final = "ups"
QUIET: Final = tuple(carrier_id for carrier_id in DIALECTS if carrier_id != FLOODER)
"""Each sends one message a second."""
QUIET_SECONDS_MAX: Final = 0.150
WAL_FILES: Final = 130
"""A server that has run for a while has files of its log to use again; a new one makes each while
all commits wait, up to 60 ms.
"""
CARRIERS: Final = 200
WAITING: Final = 500_000
CLAIM_SECONDS_MAX: Final = 0.010
_WATCH: Final = """
CREATE TABLE statesvc.picked_up (message_id uuid PRIMARY KEY, leased_at timestamptz NOT NULL);
CREATE FUNCTION statesvc.note_pick_up() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO statesvc.picked_up VALUES (NEW.message_id, clock_timestamp()) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_pick_up AFTER UPDATE OF token ON statesvc.inbox FOR EACH ROW
    WHEN (OLD.token IS NULL AND NEW.token IS NOT NULL AND NEW.carrier_id <> 'ups') EXECUTE FUNCTION statesvc.note_pick_up();
"""
"""Table of the quiet carriers only, so that the flood costs what it costs."""
_PICKUPS: Final = """
SELECT extract(epoch FROM p.leased_at - m.received_at)::float8, extract(epoch FROM m.settled_at - m.received_at)::float8
FROM statesvc.message m JOIN statesvc.picked_up p USING (message_id)
WHERE m.carrier_id <> %s AND m.received_at BETWEEN %s AND %s
"""


@dataclass(slots=True)
class Figures:
    """p99 of the quiet carriers' pickups (received to leased) and of their settling, one a run,
    and of how many it is.
    """

    idle: list[float] = field(default_factory=list)
    flooded: list[float] = field(default_factory=list)
    idle_settled: list[float] = field(default_factory=list)
    flooded_settled: list[float] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    drained_per_second: list[float] = field(default_factory=list)


@pytest.mark.soak
@pytest.mark.parametrize("is_shared", [False, True], ids=["alone", "beside another fleet"])
async def test_a_flooding_carrier_delays_the_quiet_ones_by_next_to_nothing(
    own_server: SoakServer, tmp_path: Path, *, is_shared: bool
) -> None:
    dsns = own_server.dsns
    settings = {"STATESVC_LOG_LEVEL": "warning"}
    service = Service(
        service_dsn=dsns.service_dsn, owner_dsn=dsns.owner_dsn, folder=tmp_path, settings=settings
    )
    figures = Figures()
    await own_server.make_wal(WAL_FILES)
    async with await AsyncConnection.connect(dsns.owner_dsn, autocommit=True) as owner:
        await owner.execute(_WATCH.encode())
    async with (
        running(service, "api", "worker"),
        _other_fleet(service, tmp_path) if is_shared else nullcontext(),
    ):
        quiet = asyncio.create_task(_send_quietly(service), name="quiet carriers")
        await asyncio.sleep(2)
        for run in range(RUNS):
            idle_p99, settled_p99, _ = await _pickups(service, IDLE_SECONDS)
            figures.idle.append(idle_p99)
            figures.idle_settled.append(settled_p99)
            await _hold(service, hold=True)
            await _flood(service, series=run)
            begun = time.monotonic()
            since = await service.value("SELECT statesvc.clock()")
            await _hold(service, hold=False)
            await service.drained(600, pause_seconds=0.5)
            figures.drained_per_second.append(FLOOD / (time.monotonic() - begun))
            p99, settled_p99, samples = await _pickups_since(service, since)
            figures.flooded.append(p99)
            figures.flooded_settled.append(settled_p99)
            figures.samples.append(samples)
        quiet.cancel()
        await asyncio.gather(quiet, return_exceptions=True)
    flooded = median(figures.flooded)
    sys.stdout.write(
        f"\nflood: {RUNS} runs, {FLOOD:,} messages of one carrier, {len(QUIET)} others send 1/s"
        f" each\n  quiet carriers' p99 pickup: idle {_all(figures.idle)}, flooded"
        f" {_all(figures.flooded)} of {figures.samples} messages\n  until they were settled: idle"
        f" {_all(figures.idle_settled)}, flooded {_all(figures.flooded_settled)}\n  the flood"
        f" drained at {', '.join(f'{rate:,.0f}' for rate in figures.drained_per_second)}"
        " messages/s\n"
    )
    assert flooded <= QUIET_SECONDS_MAX


@pytest.mark.soak
async def test_a_claim_among_200_carriers_with_one_backlog_of_500_000_stays_under_10_ms(
    own_server: SoakServer,
) -> None:
    async with await AsyncConnection.connect(
        own_server.dsns.superuser_dsn, autocommit=True
    ) as connection:
        connection.prepare_threshold = 2
        await connection.execute(LANES.encode(), {"carriers": CARRIERS})
        await connection.execute(FILL.encode(), {"rows": WAITING, "span": 3_000, "carrier": "c077"})
        await connection.execute(FILL.encode(), {"rows": 2_000, "span": 1_000, "carrier": "c011"})
        await connection.execute("VACUUM ANALYZE")
        seconds, short = await time_claims(connection)
    sys.stdout.write(
        f"\nclaim of 64, {WAITING:,} waiting for one of {CARRIERS} carriers: median of"
        f" {len(seconds)} {median(seconds) * 1e3:.2f} ms, slowest {max(seconds) * 1e3:.2f} ms\n"
    )
    assert median(seconds) < CLAIM_SECONDS_MAX
    assert short == 0, "claims that got too little, or left a lane out"


async def _send_quietly(service: Service) -> None:
    rng = random.Random(1)
    due = time.monotonic()
    while True:
        for carrier_id in QUIET:
            due += 1 / len(QUIET)
            await asyncio.sleep(due - time.monotonic())
            parcel = invent(rng, carrier_id, datetime.now(UTC))
            status, _ = await service.webhook(
                carrier_id, DIALECTS[carrier_id][1](parcel, parcel.scans[:1])
            )
            assert status == 200


async def _flood(service: Service, *, series: int) -> None:
    await put_all(Place(service.service_dsn, service.owner_dsn, ""), alerts(FLOOD, series=series))


@asynccontextmanager
async def _other_fleet(service: Service, folder: Path) -> AsyncIterator[None]:
    """Read a tenth of the flood."""
    change = {"candidate": "old@1", "percent": 10, "why": "flood"}
    async with service.session.put(
        f"{service.api.url}/v1/rollouts/{FLOODER}", json=change
    ) as answer:
        assert answer.status == 200
    async with await AsyncConnection.connect(service.service_dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
    program = (sys.executable, "-m", "tests.soak.old_fleet")
    fleet = await start_worker(
        service.service_dsn,
        keyring.inbox.key,
        folder / "fleet.log",
        program,
        NORMALIZER="old@1",
        CARRIERS=FLOODER,
    )
    try:
        yield
    finally:
        fleet.kill()
        await fleet.wait()


async def _hold(service: Service, *, hold: bool) -> None:
    async with service.session.put(
        f"{service.api.url}/v1/rollouts/{FLOODER}", json={"hold": hold, "why": "flood"}
    ) as answer:
        assert answer.status == 200


async def _pickups(service: Service, seconds: float) -> tuple[float, float, int]:
    since = await service.value("SELECT statesvc.clock()")
    await asyncio.sleep(seconds)
    return await _pickups_since(service, since)


async def _pickups_since(service: Service, since: Any) -> tuple[float, float, int]:
    until = await service.value("SELECT statesvc.clock()")
    await service.drained(10)
    found = await service.rows(_PICKUPS, FLOODER, since, until)
    return (
        percentile(sorted(row[0] for row in found), 0.99),
        percentile(sorted(row[1] for row in found), 0.99),
        len(found),
    )


def _all(seconds: list[float]) -> str:
    return (
        f"{median(seconds) * 1e3:.1f} ms ({', '.join(f'{second * 1e3:.1f}' for second in seconds)})"
    )

"""One shipment gets a hundred pushes a second, some of them late, next to other load:
nothing about it waits long.
"""

import asyncio
import random
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from statesvc.addons.demo.dialects import DIALECTS
from statesvc.addons.demo.parcels import Parcel, ParcelScan, ParcelStep, invent
from tests.acceptance.processes import Service, running
from tests.soak.server import SoakServer

PUSHES: Final = 2_500
PER_SECOND: Final = 100
OTHERS_PER_SECOND: Final = 20
LATE_EVERY: Final = 5
SETTLED_SECONDS_MAX: Final = 5.0
_SETTLED: Final = """
SELECT message_id = ANY (%s::uuid[]) AS hot, max(extract(epoch FROM settled_at - received_at))::float8 FROM statesvc.message GROUP BY 1
"""


def _scans(parcel: Parcel) -> Iterator[ParcelScan]:
    """Yield scans ten seconds apart; some are pushed after hundreds that came behind them."""
    began, town = datetime.now(UTC) - timedelta(days=2), parcel.scans[0].town
    for n in range(PUSHES):
        at = began + n * timedelta(seconds=10)
        if n % LATE_EVERY == 0:
            at -= timedelta(hours=1, seconds=5)
        yield ParcelScan(step=ParcelStep.DEPART if n % 2 else ParcelStep.ARRIVE, at=at, town=town)


@pytest.mark.soak
async def test_every_scan_of_a_hot_shipment_is_settled_within_seconds(
    own_server: SoakServer, tmp_path: Path
) -> None:
    dsns = own_server.dsns
    service = Service(
        service_dsn=dsns.service_dsn,
        owner_dsn=dsns.owner_dsn,
        folder=tmp_path,
        settings={"STATESVC_LOG_LEVEL": "warning"},
    )
    async with running(service, "api", "worker", "worker", "sealer", "notifier"):
        rng = random.Random(1)
        parcel = invent(rng, "ups", datetime.now(UTC))
        hot: list[str] = []

        async def push(carrier_id: str, body: bytes) -> str:
            status, answer = await service.webhook(carrier_id, body)
            assert status == 200
            return str(answer["message_id"])

        async def push_hot(scan: ParcelScan) -> None:
            hot.append(await push("ups", DIALECTS["ups"][1](parcel, [scan])))

        began = time.monotonic()
        carriers = list(DIALECTS.items())
        async with asyncio.TaskGroup() as sending:
            for n, scan in enumerate(_scans(parcel)):
                await asyncio.sleep(began + n / PER_SECOND - time.monotonic())
                sending.create_task(push_hot(scan))
                if n % (PER_SECOND // OTHERS_PER_SECOND) == 0:
                    carrier_id, (_, body_of) = carriers[n % len(carriers)]
                    other = invent(rng, carrier_id, datetime.now(UTC))
                    sending.create_task(push(carrier_id, body_of(other, other.scans[:1])))
        sent = time.monotonic()
        await service.drained(180)
        drained = time.monotonic() - sent
        assert await service.value("SELECT max(version) FROM statesvc.stream") == PUSHES
        slowest = dict(await service.rows(_SETTLED, hot))
        postponed = 0
        for role in service.roles:
            if role.role == "worker":
                async with service.session.get(role.metrics_url) as answer:
                    lines = (await answer.text()).splitlines()
                postponed += sum(
                    int(float(line.split()[-1]))
                    for line in lines
                    if line.startswith("statesvc_messages_postponed_total")
                )
    sys.stdout.write(
        f"\nsent {PUSHES} to one shipment in {sent - began:.1f} s, drained {drained:.1f} s later:"
        f" slowest from ACK to settled {slowest[True]:.1f} s, of others {slowest[False]:.1f} s;"
        f" {postponed} postponed\n"
    )
    assert slowest[True] <= SETTLED_SECONDS_MAX

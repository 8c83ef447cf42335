"""One dead and one slow subscriber among fifty take nothing from the other forty-eight."""

import asyncio
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.processes import Service
from tests.simulation.receivers import Behaviour, Dead, Slow
from tests.soak.fanout import Changes, Receiver, changes, listening
from tests.soak.server import SoakServer

pytestmark = pytest.mark.soak

RUNS: Final = int(os.environ.get("STATESVC_SOAK_RUNS", "5"))
SECONDS: Final = 20.0
TRANSITIONS_PER_SECOND: Final = 2.0
SUBSCRIBERS: Final = 50
WELL_SECONDS: Final = 0.02


async def test_the_others_first_attempts_come_as_soon_as_without_them(
    own_server: SoakServer, tmp_path: Path
) -> None:
    undisturbed, disturbed = [], []
    async with Service(
        service_dsn=own_server.dsns.service_dsn,
        owner_dsn=own_server.dsns.owner_dsn,
        folder=tmp_path,
        settings={},
    ) as service:
        await service.start("notifier")
        for _ in range(RUNS):
            undisturbed.append(await p99_of_the_well(own_server, []))
            disturbed.append(await p99_of_the_well(own_server, [Dead(), Slow()]))
    with_them, without = statistics.median(disturbed), statistics.median(undisturbed)
    sys.stdout.write(
        f"\np99 to the first attempt, medians of {RUNS} runs: {without * 1000:.1f} ms without,"
        f" {with_them * 1000:.1f} ms with\n"
    )
    assert with_them <= max(2 * without, 0.050)


async def p99_of_the_well(server: SoakServer, bad: list[Behaviour]) -> float:
    """Return seconds from a change to its first attempt, of those whose receiver is well.

    All are subscribed anew.
    """
    receivers = [Receiver(behaviour) for behaviour in bad] + [
        Receiver(Slow(WELL_SECONDS)) for _ in range(SUBSCRIBERS - len(bad))
    ]
    async with listening(receivers), changes(server.dsns.service_dsn) as told:
        ids = [await told.subscribe(receiver.url) for receiver in receivers]
        shipments = await told.make_shipments(round(TRANSITIONS_PER_SECOND * SECONDS))
        await told.tell_steadily(shipments, per_second=TRANSITIONS_PER_SECOND)
        well = ids[len(bad) :]
        await settled(told, well, count=len(shipments) * len(well))
        for subscription_id in ids:
            await told.unsubscribe(subscription_id)
        waits = await told.rows(
            "SELECT extract(epoch FROM a.started_at - n.created_at)::float8 FROM statesvc.attempt a"
            " JOIN statesvc.notification n USING (shipment_id, sequence, subscription_id) WHERE"
            " a.tries IS NULL AND a.subscription_id = ANY (%s) ORDER BY 1",
            well,
        )
    return float(waits[int(0.99 * len(waits))][0])


async def settled(told: Changes, ids: object, *, count: int) -> None:
    deadline = time.monotonic() + 60
    while (
        await told.rows(
            "SELECT count(*) FROM statesvc.attempt WHERE subscription_id = ANY (%s)", ids
        )
    )[0][0] < count:
        assert time.monotonic() < deadline, "not told in time"
        await asyncio.sleep(0.2)

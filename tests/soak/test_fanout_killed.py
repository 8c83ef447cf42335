"""100,000 notifications while the notifier is killed 20 times: each comes, in order for each
shipment, under one id.
"""

import asyncio
import os
import sys
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.processes import Service, until_false
from tests.simulation.receivers import Slow
from tests.soak.fanout import Changes, Receiver, changes, listening
from tests.soak.server import SoakServer

pytestmark = pytest.mark.soak

NOTIFICATIONS: Final = int(os.environ.get("STATESVC_SOAK_NOTIFICATIONS", "100000"))
KILLS: Final = 20
SUBSCRIBERS: Final = 4
CHANGES_EACH: Final = 10
LEASE_SECONDS: Final = 16
TOLD_AT_ONCE: Final = 500
DRAINED_SECONDS_MAX: Final = 900


def received(receivers: list[Receiver]) -> int:
    return sum(len(receiver.taken) for receiver in receivers)


async def something_waits(told: Changes) -> bool:
    return bool((await told.rows("SELECT EXISTS (SELECT FROM statesvc.outbox)"))[0][0])


async def test_each_reaches_each_subscriber_in_order_however_often_the_notifier_dies(
    own_server: SoakServer, tmp_path: Path
) -> None:
    receivers = [Receiver(Slow(0.02)) for _ in range(SUBSCRIBERS)]
    settings = {"STATESVC_NOTIFIER_LEASE_SECONDS": str(LEASE_SECONDS)}
    began = time.monotonic()
    async with (
        listening(receivers),
        changes(own_server.dsns.service_dsn) as told,
        Service(
            service_dsn=own_server.dsns.service_dsn,
            owner_dsn=own_server.dsns.owner_dsn,
            folder=tmp_path,
            settings=settings,
        ) as service,
    ):
        ids = [await told.subscribe(receiver.url, coalesce=False) for receiver in receivers]
        shipments = await told.make_shipments(NOTIFICATIONS // SUBSCRIBERS // CHANGES_EACH)
        written = 0
        for sequence in range(1, CHANGES_EACH + 1):
            for place in range(0, len(shipments), TOLD_AT_ONCE):
                written += await told.tell(
                    [(one, sequence) for one in shipments[place : place + TOLD_AT_ONCE]]
                )

        async def is_below(count: int) -> bool:
            return received(receivers) < count

        for kill in range(KILLS):
            (notifier,) = await service.start("notifier")
            await until_false(partial(is_below, (kill + 1) * written // (KILLS + 1)))
            notifier.kill()
            await notifier.exit_code()
        await service.start("notifier")
        async with asyncio.timeout(DRAINED_SECONDS_MAX):
            await until_false(partial(something_waits, told), pause_seconds=0.5)
        expected = {
            subscription_id: await told.rows(
                "SELECT webhook_id, shipment_id, sequence FROM statesvc.notification WHERE"
                " subscription_id = %s",
                subscription_id,
            )
            for subscription_id in ids
        }
    seconds = time.monotonic() - began
    again = received(receivers) - written
    sys.stdout.write(
        f"\n{written} notifications, {KILLS} kills: each received, {again} of them again, in"
        f" {seconds:.0f} s\n"
    )
    for subscription_id, receiver in zip(ids, receivers, strict=True):
        of = {
            webhook_id: (shipment_id, sequence)
            for webhook_id, shipment_id, sequence in expected[subscription_id]
        }
        assert set(receiver.taken) == set(of), "each at least once, and nothing else"
        order = defaultdict(list)
        for webhook_id in dict.fromkeys(receiver.taken):
            shipment_id, sequence = of[webhook_id]
            order[shipment_id].append(sequence)
        assert all(sequences == list(range(1, CHANGES_EACH + 1)) for sequences in order.values())

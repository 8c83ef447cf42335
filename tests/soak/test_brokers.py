"""NATS and RabbitMQ killed again and again under load, notifiers too: nothing is lost, and each
shipment's changes come in their order.
"""

import asyncio
import os
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import pytest

from statesvc.delivery.outgoing import Destination, Login
from tests.acceptance.processes import Service, until_false
from tests.soak.fanout import Changes, changes
from tests.soak.server import SoakServer
from tests.world.brokers import Nats, RabbitMq, Server, running_nats, running_rabbitmq

pytestmark = pytest.mark.soak

NOTIFICATIONS: Final = int(os.environ.get("STATESVC_SOAK_BROKER_NOTIFICATIONS", "20000"))
KILLS: Final = 8
CHANGES_A_KILL: Final = 2
CHANGES_EACH: Final = KILLS * CHANGES_A_KILL
LEASE_SECONDS: Final = 16
OUTAGE_SECONDS: Final = 2
TOLD_AT_ONCE: Final = 500
DRAINED_SECONDS_MAX: Final = 900

Stored = Sequence[tuple[str, str, int]]
"""`(webhook-id, shipment, sequence)` in the broker's order."""


class Target(Protocol):
    """A broker with something that keeps all that is published."""

    destination: Destination

    @property
    def server(self) -> Server:
        """Server to be killed."""

    async def stored(self) -> Stored: ...


class Stream:
    """A stream of NATS, on files."""

    def __init__(self, server: Nats) -> None:
        self.server: Nats = server
        self.destination = Destination(f"{server.address}/shipments.changed?stream=SHIPMENTS")

    async def stored(self) -> Stored:
        found = await self.server.stored("SHIPMENTS")
        return [
            (headers["ce-id"], headers["ce-subject"], int(headers["ce-sequence"]))
            for headers, _ in found
        ]


class Queue:
    """A quorum queue of RabbitMQ."""

    def __init__(self, server: RabbitMq) -> None:
        self.server: RabbitMq = server
        self.destination = Destination(
            f"amqp://127.0.0.1:{server.port}/%2F/shipments", Login("guest", "guest")
        )

    async def stored(self) -> Stored:
        found = await self.server.stored("shipments")
        return [
            (
                str(one.message_id),
                str(one.headers["cloudEvents_subject"]),
                int(str(one.headers["cloudEvents_sequence"])),
            )
            for one in found
        ]


@asynccontextmanager
async def broker(name: str, folder: Path) -> AsyncIterator[Target]:
    if name == Nats.name:
        async with running_nats(folder) as nats:
            await nats.add_stream("SHIPMENTS", ["shipments.>"])
            yield Stream(nats)
    else:
        async with running_rabbitmq(folder) as rabbitmq:
            await rabbitmq.declare("shipments", "shipments", arguments={"x-queue-type": "quorum"})
            yield Queue(rabbitmq)


async def waiting(told: Changes) -> int:
    count: int = (await told.rows("SELECT count(*) FROM statesvc.outbox"))[0][0]
    return count


@pytest.mark.parametrize("name", [Nats.name, RabbitMq.name])
async def test_nothing_is_lost_and_order_is_kept_however_often_broker_and_notifier_die(
    name: str, own_server: SoakServer, tmp_path: Path
) -> None:
    settings = {"STATESVC_NOTIFIER_LEASE_SECONDS": str(LEASE_SECONDS)}
    dsns = own_server.dsns
    began = time.monotonic()
    async with (
        broker(name, tmp_path / name) as target,
        changes(dsns.service_dsn) as told,
        Service(
            service_dsn=dsns.service_dsn,
            owner_dsn=dsns.owner_dsn,
            folder=tmp_path,
            settings=settings,
        ) as service,
    ):
        subscription_id = await told.subscribe(
            target.destination.url, login=target.destination.login, coalesce=False
        )
        shipments = await told.make_shipments(NOTIFICATIONS // CHANGES_EACH)
        (notifier,) = await service.start("notifier")
        written = 0
        for kill in range(KILLS):
            # each outage is over, retries included, before the next: else the pauses between
            # retries add up to hours
            for sequence in range(kill * CHANGES_A_KILL + 1, (kill + 1) * CHANGES_A_KILL + 1):
                for place in range(0, len(shipments), TOLD_AT_ONCE):
                    written += await told.tell(
                        [(one, sequence) for one in shipments[place : place + TOLD_AT_ONCE]]
                    )
            await _until_left(told, len(shipments))
            await target.server.kill()
            if kill % 2:
                notifier.kill()
                await notifier.exit_code()
                (notifier,) = await service.start("notifier")
            await asyncio.sleep(OUTAGE_SECONDS)
            await target.server.start()
            await _until_left(told, 0)
        query = (
            "SELECT webhook_id, shipment_id::text, sequence FROM statesvc.notification WHERE"
            " subscription_id = %s"
        )
        expected = {tuple(row) for row in await told.rows(query, subscription_id)}
        failed = (await told.rows("SELECT count(*) FROM statesvc.attempt WHERE number > 1"))[0][0]
        buried = (await told.rows("SELECT count(*) FROM statesvc.dead_letter"))[0][0]
        found = await target.stored()
    first = list(dict.fromkeys(found))
    sys.stdout.write(
        f"\n{name}: {written} notifications, broker killed {KILLS} times, notifier {KILLS // 2}:"
        f" each stored, {len(found) - len(first)} of them again, {failed} attempts failed, in"
        f" {time.monotonic() - began:.0f} s\n"
    )
    assert buried == 0
    assert set(first) == expected, "each at least once, and nothing else"
    order: dict[str, list[int]] = defaultdict(list)
    for _, shipment, sequence in first:
        order[shipment].append(sequence)
    assert all(sequences == list(range(1, CHANGES_EACH + 1)) for sequences in order.values())


async def _until_left(told: Changes, count: int) -> None:
    """Wait until no more than these wait."""

    async def are_more() -> bool:
        return await waiting(told) > count

    async with asyncio.timeout(DRAINED_SECONDS_MAX):
        await until_false(are_more, pause_seconds=0.2)

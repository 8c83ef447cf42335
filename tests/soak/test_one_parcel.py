"""A thousand parcels that UPS, AfterShip and Shippo push, each in an order of its own, while
workers, notifiers and the sealer are killed.

A subscription with `parcels` `once` gets each status of a parcel once, from whichever source says
it first; another one gets all that every source says. Half of the parcels are told by each source
in its order, half in any order.
"""

import asyncio
import json
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from psycopg import AsyncConnection

from events.carriers import CARRIERS
from projections.parcel import ParcelSource, SourceChange, notified_changes
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from tests.acceptance.processes import MASTER_KEY, Service, until_false
from tests.bench.parcel_sources import JOURNEY, MORNING, SOURCES, WRITERS
from tests.soak.crew import Crew
from tests.soak.server import SoakServer
from tests.soak.story import CREW, DRAIN_SECONDS, SEED, SHORT_LEASE
from tests.soak.subscriber import Subscriber
from tests.statesvc.append.test_parcels import IN_ORDER
from tests.statesvc.worker.log_check import check_log

PARCELS: Final = int(os.environ.get("STATESVC_SOAK_PARCELS", "1000"))
AT_ONCE: Final = 64
"""Parcels that are pushed at the same time."""
KILLS: Final = (1.0, 4.0)
"""Seconds between two."""
LEFT: Final = (
    "SELECT EXISTS (SELECT FROM statesvc.inbox) OR EXISTS (SELECT FROM statesvc.outbox) OR EXISTS"
    " (SELECT FROM statesvc.unsealed)"
)
SENT: Final = (
    "SELECT webhook_id, shipment_id, sequence FROM statesvc.notification WHERE subscription_id = %s"
    " AND sequence > 0"
)


@dataclass(frozen=True)
class Parcel:
    """A parcel and the order in which its sources push it."""

    number: str
    in_order: bool
    pushes: Sequence[tuple[str, bytes]]


def parcel(rng: random.Random, place: int) -> Parcel:
    number, in_order = f"1Z{SEED:04d}{place:012d}", place % 2 == 0
    waiting: dict[str, list[Sequence[int]]] = {}
    for source in SOURCES:
        steps = list(range(len(JOURNEY)))
        if in_order:
            # the history again at each push, but of UPS, which pushes scans
            waiting[source] = [steps[: step + 1] for step in steps]
        else:
            rng.shuffle(steps)
            waiting[source] = [[step] for step in steps]
    pushes = []
    while left := [source for source in SOURCES if waiting[source]]:
        source = rng.choice(left)
        pushes.append((source, WRITERS[source](number, waiting[source].pop(0))))
    return Parcel(number, in_order, pushes)


@pytest.mark.soak
@pytest.mark.parametrize("source", SOURCES)
def test_each_source_says_the_whole_journey(source: str) -> None:
    carrier = CARRIERS[source]
    body = (WRITERS[source]("1ZTEST", [step]) for step in range(len(JOURNEY)))
    said = [
        reading
        for each in body
        for reading in carrier.normalizers[carrier.stable](each, MORNING).readings
    ]
    assert [each.status for each in said] == list(JOURNEY)
    assert [each.time.instant for each in said] == [
        MORNING + timedelta(hours=step) for step in range(len(JOURNEY))
    ]
    assert {each.parcel_carrier_id for each in said} == {None if source == "ups" else "ups"}


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_each_status_of_a_parcel_is_told_once_whatever_comes_first_and_whoever_dies(
    own_server: SoakServer, tmp_path: Path
) -> None:
    rng = random.Random(SEED)
    parcels = [parcel(rng, place) for place in range(PARCELS)]
    server = own_server.dsns
    settings = {
        **SHORT_LEASE,
        "STATESVC_WEBHOOK_SECRET_UPS": None,
        "STATESVC_LOG_LEVEL": "warning",
        "STATESVC_SEALER_CHECKPOINT_FILE": str(tmp_path / "checkpoint"),
    }
    service = Service(
        service_dsn=server.service_dsn,
        owner_dsn=server.owner_dsn,
        folder=tmp_path,
        settings=settings,
    )
    once, everything = Subscriber(), Subscriber()
    await once.start()
    await everything.start()
    began, kills = time.monotonic(), 0
    async with service:
        crew = Crew(service, list(CREW))
        try:
            await crew.start()
            ids = [
                await subscribe(service, each, wish)
                for each, wish in ((once, "once"), (everything, "all"))
            ]
            pushing = asyncio.create_task(push_all(service, crew, parcels))
            while not pushing.done():
                await asyncio.wait([pushing], timeout=rng.uniform(*KILLS))
                crew.some(rng, "worker", "notifier", "sealer").kill()
                kills += 1
            again = pushing.result()
            pushed = time.monotonic() - began
            async with asyncio.timeout(2 * DRAIN_SECONDS):
                await until_false(lambda: service.value(LEFT), pause_seconds=0.25)
            whole = await judge(service, parcels, dict(zip(ids, (once, everything), strict=True)))
            assert await service.value("SELECT count(*) FROM statesvc.dead_letter") == 0
            await service.command("rebuild", "shipment", "--compare")
            await service.command("verify")
            assert not crew.deaths, crew.deaths
            assert await crew.stop() == [0] * len(CREW)
        finally:
            await crew.abandon()
            await once.stop()
            await everything.stop()
    pushes, deliveries = (
        sum(len(each.pushes) for each in parcels),
        len(once.received) + len(everything.received),
    )
    sys.stdout.write(
        f"\n{PARCELS:,} parcels, {whole:,} applied step by step; {pushes:,} pushes in {pushed:.0f}"
        f" s, {again:,} twice; {kills} kills; notifications: {len(once.said):,} once,"
        f" {len(everything.said):,} of everything, {deliveries:,} deliveries\n"
    )


async def subscribe(service: Service, subscriber: Subscriber, parcels: str) -> str:
    asked = json.dumps(
        {
            "url": subscriber.url,
            "coalesce": False,
            "parcels": parcels,
            "types": ["shipment.status_changed"],
        }
    )
    status, answer = await service.post(
        "/v1/subscriptions", asked, **{"Content-Type": "application/json"}
    )
    assert status == 201, answer
    subscriber.secret = answer["secret"]
    return str(answer["id"])


async def push_all(service: Service, crew: Crew, parcels: Sequence[Parcel]) -> int:
    """Push all parcels, each in its order; some pushes twice. Return how many."""
    slots, again = asyncio.Semaphore(AT_ONCE), 0
    rng = random.Random(SEED + 1)

    async def push(source: str, body: bytes) -> None:
        while True:
            try:
                async with service.session.post(
                    f"{crew.webhook_url}/v1/webhooks/{source}", data=body
                ) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)

    async def one(each: Parcel) -> None:
        nonlocal again
        async with slots:
            for source, body in each.pushes:
                await push(source, body)
                if rng.random() < 0.03:
                    again += 1
                    await push(source, body)

    async with asyncio.TaskGroup() as group:
        for each in parcels:
            group.create_task(one(each))
    return again


async def judge(
    service: Service, parcels: Sequence[Parcel], subscribers: dict[str, Subscriber]
) -> int:
    """Hold what was told against the log and the journey.

    Return of how many parcels every source was applied step by step.
    """
    changes: dict[str, list[SourceChange]] = defaultdict(list)
    for shipment_id, carrier_id, number, *change in await service.rows(IN_ORDER):
        changes[number].append(SourceChange(ParcelSource(shipment_id, carrier_id, number), *change))
    assert changes.keys() == {each.number for each in parcels}
    (of_once, once), (of_everything, everything) = subscribers.items()
    told = {number: list(notified_changes(said)) for number, said in changes.items()}
    assert await sent(service, of_everything, everything) == Counter(
        (one.source.shipment_id, one.sequence) for said in changes.values() for one in said
    )
    assert await sent(service, of_once, once) == Counter(
        (one.source.shipment_id, one.sequence) for said in told.values() for one in said
    )
    # what a receiver saw of a parcel, by its number alone: no rule of ours in it
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for webhook_id in dict.fromkeys(once.received):
        data = once.said[webhook_id]["data"]
        seen[data["tracking_number"]][data["to"]] += 1
    all_whole = 0
    for each in parcels:
        assert seen[each.number] <= Counter(JOURNEY), (each, seen[each.number])
        assert seen[each.number]["delivered"] == 1, each
        of_source = {
            source: [
                one.to_status for one in changes[each.number] if one.source.carrier_id == source
            ]
            for source in SOURCES
        }
        if all(said == list(JOURNEY) for said in of_source.values()):
            all_whole += 1
            assert seen[each.number] == Counter(JOURNEY), each
            assert [one.to_status for one in told[each.number]] == list(JOURNEY), each
    assert not once.forged
    assert not everything.forged
    async with await AsyncConnection.connect(service.owner_dsn, autocommit=True) as connection:
        await check_log(connection, await load_keyring(connection, parse_master_keys(MASTER_KEY)))
    return all_whole


async def sent(service: Service, subscription_id: str, subscriber: Subscriber) -> Counter[Any]:
    """Return how often the subscriber was told of each change, repeats of one
    webhook-id not counted.
    """
    due = {
        webhook_id: (shipment_id, sequence)
        for webhook_id, shipment_id, sequence in await service.rows(SENT, subscription_id)
    }
    return Counter(due[webhook_id] for webhook_id in subscriber.said)

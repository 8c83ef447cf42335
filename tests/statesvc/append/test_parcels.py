"""One parcel that a carrier and aggregators push: who is notified of what, whatever comes first."""

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import AsyncConnection

from events.identity.ids import shipment_id
from projections.parcel import ParcelSource, SourceChange, notified_changes
from statesvc.log.history import History
from statesvc.shipments.references import AttachedTo, ParcelNumber, References, attach_references
from statesvc.subscriptions.replay import ReplayRequest, replay
from tests.statesvc.worker.log_check import check_log
from tests.world.due_work import do_due_work
from tests.world.log_builder import MORNING
from tests.world.worker_harness import ACME, CARRIER_ID, WorkerHarness, push_body

HUBS = ("hub_one", "hub_two")
OTHER = "bravo"
SOURCES = (CARRIER_ID, *HUBS)
JOURNEY = (
    "info_received",
    "picked_up",
    "in_transit",
    "exception",
    "in_transit",
    "out_for_delivery",
    "delivered",
)
SUBSCRIBE = """
INSERT INTO statesvc.subscription
    (subscription_id, created_at, created_by, owner, url, sealed_secrets, parcels, carriers, statuses)
VALUES (%s, statesvc.clock(), 'test', 'test', 'https://shop.example', '{}', %s, %s, %s)
"""
TOLD = """
SELECT n.carrier_id, n.to_status FROM statesvc.notification n JOIN statesvc.fanout f USING (shipment_id, sequence)
WHERE n.subscription_id = %s AND n.subscription_id = ANY (f.subscriptions) ORDER BY f.batch_id, f.ordinal
"""
PARCELS = 30
"""Twice as many random orders in all; a thousand in `tests/soak/test_one_parcel.py`."""
KILL = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND datname = current_database()
"""
IN_ORDER = """
SELECT k.shipment_id, k.carrier_id, k.number, t.sequence, t.from_status, t.to_status, e.occurred_at
FROM statesvc.transition t JOIN statesvc.stream k USING (shipment_id)
JOIN statesvc.event e ON e.shipment_id = t.shipment_id AND e.version = t.sequence ORDER BY t.batch_id, t.ordinal
"""


@dataclass
class ParcelShop:
    """A shop that a carrier and two aggregators push to."""

    harness: WorkerHarness

    async def subscribe(
        self, parcels: str, *, carriers: list[str] | None = None, statuses: list[str] | None = None
    ) -> UUID:
        subscription_id = uuid4()
        await self.harness.connection.execute(
            SUBSCRIBE, (subscription_id, parcels, carriers, statuses)
        )
        return subscription_id

    async def ingest(
        self, carrier_id: str, number: str, status: str, minute: int = 0, **more: Any
    ) -> None:
        await self.harness.push(
            scan(carrier_id, number, status, minute, **more), carrier_id=carrier_id
        )
        await self.harness.work()

    async def told(self, subscription_id: UUID) -> list[tuple[str, str]]:
        return await self.harness.rows(TOLD, subscription_id)


def scan(carrier_id: str, number: str, status: str, minute: int = 0, **more: Any) -> bytes:
    named = {} if carrier_id == CARRIER_ID else {"parcel_carrier_id": CARRIER_ID}
    return push_body(
        {
            "number": number,
            "status": status,
            "minute": minute,
            "code": f"{status}{minute}",
            **named,
            **more,
        }
    )


@pytest.fixture
def parcels(harness: WorkerHarness) -> ParcelShop:
    carriers = {each: replace(ACME, carrier_id=each) for each in (*SOURCES, OTHER)}
    harness.context.carriers.update(carriers)  # type: ignore[attr-defined]
    return ParcelShop(harness)


async def test_whoever_says_a_status_first_is_heard_and_the_others_are_not(
    parcels: ParcelShop,
) -> None:
    once, everything = await parcels.subscribe("once"), await parcels.subscribe("all")
    said = [
        ("hub_one", "in_transit"),
        (CARRIER_ID, "in_transit"),
        (CARRIER_ID, "delivered"),
        ("hub_two", "delivered"),
        ("hub_one", "delivered"),
    ]
    for carrier_id, status in said:
        await parcels.ingest(
            carrier_id, "P1", status, minute=("in_transit", "delivered").index(status)
        )
    assert await parcels.told(once) == [("hub_one", "in_transit"), (CARRIER_ID, "delivered")]
    assert await parcels.told(everything) == said


@pytest.mark.parametrize("in_one_batch", [True, False])
async def test_a_carrier_that_names_its_parcel_before_it_says_anything_of_it_finds_it(
    parcels: ParcelShop,
    in_one_batch: bool,  # noqa: FBT001 - a parameter
) -> None:
    once = await parcels.subscribe("once")
    await parcels.harness.push(scan("hub_one", "P1", "delivered"), carrier_id="hub_one")
    if not in_one_batch:
        await parcels.harness.work()
    await parcels.harness.push(push_body(named=("P1",)))
    await parcels.harness.work()
    await parcels.ingest(CARRIER_ID, "P1", "delivered")
    assert await parcels.told(once) == [("hub_one", "delivered")]


async def test_who_asks_for_one_carrier_is_told_all_that_it_says(parcels: ParcelShop) -> None:
    of_acme = await parcels.subscribe("once", carriers=[CARRIER_ID])
    of_hubs = await parcels.subscribe("once", carriers=list(HUBS))
    for status in ("in_transit", "delivered"):
        for carrier_id in reversed(SOURCES):
            await parcels.ingest(
                carrier_id, "P1", status, minute=("in_transit", "delivered").index(status)
            )
    assert await parcels.told(of_acme) == [(CARRIER_ID, "in_transit"), (CARRIER_ID, "delivered")]
    assert await parcels.told(of_hubs) == [("hub_two", "in_transit"), ("hub_two", "delivered")]


async def test_an_update_comes_from_who_told_the_status(parcels: ParcelShop) -> None:
    once, everything = await parcels.subscribe("once"), await parcels.subscribe("all")
    for carrier_id in SOURCES:
        await parcels.ingest(carrier_id, "P1", "delivered")
    for carrier_id in reversed(SOURCES):
        await parcels.ingest(carrier_id, "P1", "out_for_delivery", 1)
        await parcels.ingest(carrier_id, "P1", "delivered", 2)
    assert await parcels.told(once) == [(CARRIER_ID, "delivered")] * 2
    assert len(await parcels.told(everything)) == 6


async def test_a_silence_is_told_by_who_told_the_status(parcels: ParcelShop) -> None:
    once, everything = await parcels.subscribe("once"), await parcels.subscribe("all")
    now = (await parcels.harness.database.clock.now() - MORNING) // timedelta(minutes=1)
    await parcels.ingest(CARRIER_ID, "P1", "in_transit", now)
    await parcels.ingest("hub_one", "P1", "in_transit", now)
    await parcels.ingest("hub_two", "P1", "out_for_delivery", now)
    await parcels.harness.database.clock.advance(121 * 3600)
    await do_due_work(parcels.harness.connection)
    assert await parcels.harness.value("SELECT count(*) FROM statesvc.observation") == 4
    silences = (
        "SELECT carrier_id, type FROM statesvc.notification WHERE subscription_id = %s AND sequence"
        " < 0 ORDER BY carrier_id, type"
    )
    assert await parcels.harness.rows(silences, once) == [
        ("hub_two", "shipment.delivery_missed"),
        ("hub_two", "shipment.stalled"),
    ]
    assert len(await parcels.harness.rows(silences, everything)) == 4


async def test_a_replay_of_what_was_missed_tells_each_status_once(parcels: ParcelShop) -> None:
    once = await parcels.subscribe("once")
    await parcels.harness.connection.execute(
        "UPDATE statesvc.subscription SET disabled_at = statesvc.clock(), disabled_why = 'test'"
    )
    for status, minute in (("in_transit", 0), ("delivered", 1)):
        for carrier_id in SOURCES if minute else reversed(SOURCES):
            await parcels.ingest(carrier_id, "P1", status, minute)
    assert await parcels.told(once) == []
    await parcels.harness.connection.execute(
        "UPDATE statesvc.subscription SET disabled_at = NULL, disabled_why = NULL"
    )
    now = await parcels.harness.database.clock.now()
    asked = ReplayRequest(
        subscription_id=once,
        since=now - timedelta(hours=1),
        until=now + timedelta(hours=1),
        open_end=True,
        delivered_too=False,
        dry_run=False,
        actor="test",
        run_id=uuid4(),
    )
    done = await replay(parcels.harness.connection, asked, archive=History(None))
    assert (done.matched, done.put, done.never_written) == (2, 2, 2)
    assert set(await parcels.told(once)) == {("hub_two", "in_transit"), (CARRIER_ID, "delivered")}


async def test_a_shipper_says_that_two_numbers_are_one_parcel_before_or_after_the_first_scan(
    parcels: ParcelShop,
) -> None:
    once = await parcels.subscribe("once")
    await parcels.ingest(CARRIER_ID, "P1", "in_transit")
    for number in ("Q1", "Q2"):
        said = References(
            parcel=ParcelNumber(
                carrier_id=CARRIER_ID, tracking_number="p 1" if number == "Q1" else "P2"
            )
        )
        await attach_references(
            parcels.harness.connection,
            parcels.harness.keyring,
            AttachedTo("bravo", number),
            said,
            actor="test",
            why={},
        )
    await parcels.ingest("bravo", "Q1", "in_transit", parcel_carrier_id=None)
    await parcels.ingest("bravo", "Q1", "delivered", 1, parcel_carrier_id=None)
    await parcels.ingest("hub_one", "P1", "delivered", 1)
    await parcels.ingest(CARRIER_ID, "P1", "delivered", 1)
    assert await parcels.told(once) == [(CARRIER_ID, "in_transit"), ("bravo", "delivered")]
    await parcels.ingest("bravo", "Q2", "delivered", parcel_carrier_id=None)
    await parcels.ingest(CARRIER_ID, "P2", "delivered")
    assert await parcels.told(once) == [
        (CARRIER_ID, "in_transit"),
        ("bravo", "delivered"),
        ("bravo", "delivered"),
    ]


async def test_a_link_that_is_taken_back_is_of_no_parcel(parcels: ParcelShop) -> None:
    once, number = await parcels.subscribe("once"), AttachedTo("bravo", "Q1")
    for said in (ParcelNumber(carrier_id=CARRIER_ID, tracking_number="P1"), None):
        stated = References(parcel=said)
        await attach_references(
            parcels.harness.connection,
            parcels.harness.keyring,
            number,
            stated,
            actor="test",
            why={},
        )
    await parcels.ingest("bravo", "Q1", "delivered", parcel_carrier_id=None)
    await parcels.ingest(CARRIER_ID, "P1", "delivered")
    assert len(await parcels.told(once)) == 2


async def test_an_erased_shipments_statuses_stay_told(parcels: ParcelShop) -> None:
    once = await parcels.subscribe("once")
    await parcels.ingest(CARRIER_ID, "P1", "delivered")
    await parcels.harness.connection.execute(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock()"
    )
    await parcels.ingest("hub_one", "P1", "delivered")
    assert await parcels.told(once) == [(CARRIER_ID, "delivered")]


async def test_a_parcel_that_is_being_appended_holds_up_its_other_sources(
    parcels: ParcelShop,
) -> None:
    harness, once = parcels.harness, await parcels.subscribe("once")
    await parcels.ingest(CARRIER_ID, "P1", "in_transit")
    async with await AsyncConnection.connect(harness.database.service_dsn) as other:
        await other.execute("SELECT FROM statesvc.stream WHERE number = 'P1' FOR NO KEY UPDATE")
        await harness.push(
            scan("hub_one", "P1", "delivered", 1),
            scan("hub_one", "P2", "delivered", 1),
            carrier_id="hub_one",
        )
        assert await harness.process(await harness.claim()) == 1, "the other parcel goes on"
    assert [
        number
        for (number,) in await harness.rows(
            "SELECT tracking_number FROM statesvc.notification ORDER BY created_at"
        )
    ] == [
        "P1",
        "P2",
    ]
    assert await harness.value("SELECT count(*) FROM statesvc.inbox WHERE token IS NULL") == 1
    assert [status for _, status in await parcels.told(once)] == ["in_transit", "delivered"]


async def test_of_a_carrier_and_an_aggregator_that_are_both_new_one_waits(
    parcels: ParcelShop,
) -> None:
    harness = parcels.harness
    async with await AsyncConnection.connect(harness.database.service_dsn) as other:
        await other.execute(
            "SELECT pg_advisory_xact_lock(uuid_hash_extended(%s, 0))",
            (shipment_id(CARRIER_ID, "P1", ""),),
        )
        await harness.push(scan("hub_one", "P1", "delivered"), carrier_id="hub_one")
        assert await harness.process(await harness.claim()) == 0
    assert await harness.value("SELECT count(*) FROM statesvc.inbox") == 1


async def test_a_parcel_that_another_lets_go_while_the_rest_is_looked_up_is_told_once(
    parcels: ParcelShop,
) -> None:
    harness, once = parcels.harness, await parcels.subscribe("once")
    await parcels.ingest(CARRIER_ID, "P1", "delivered")
    await harness.push(scan("hub_one", "P1", "delivered"), carrier_id="hub_one")
    async with (
        await AsyncConnection.connect(harness.database.owner_dsn) as later,
        await AsyncConnection.connect(harness.database.service_dsn) as other,
    ):
        # the epoch is read behind the first look at the streams
        await later.execute("LOCK TABLE statesvc.log_epoch IN ACCESS EXCLUSIVE MODE")
        await other.execute("SELECT FROM statesvc.stream WHERE number = 'P1' FOR NO KEY UPDATE")
        work = asyncio.ensure_future(harness.process(await harness.claim()))
        await harness.until(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation ="
            " 'statesvc.log_epoch'::regclass",
            1,
        )
        await other.rollback()
        await later.rollback()
        await work
    while await harness.value("SELECT count(*) FROM statesvc.inbox"):
        await harness.work()
    assert await parcels.told(once) == [(CARRIER_ID, "delivered")]


def _journeys(random: Random, number: str, *, in_order: bool) -> list[tuple[str, bytes]]:
    """Return what all sources push of one parcel; each in its order, or not."""
    pushed = {
        carrier_id: [
            scan(carrier_id, number, status, minute) for minute, status in enumerate(JOURNEY)
        ]
        for carrier_id in SOURCES
    }
    said: list[tuple[str, bytes]] = []
    while waiting := [carrier_id for carrier_id, left in pushed.items() if left]:
        carrier_id = random.choice(waiting)
        said.append(
            (
                carrier_id,
                pushed[carrier_id].pop(
                    0 if in_order else random.randrange(len(pushed[carrier_id]))
                ),
            )
        )
    return said


@pytest.mark.slow
@pytest.mark.parametrize("in_order", [True, False])
async def test_parcels_of_three_sources_in_any_order_on_four_workers_that_are_killed(
    parcels: ParcelShop,
    in_order: bool,  # noqa: FBT001 - a parameter
) -> None:
    # of every order the log holds all, and who asks for each status once is told what
    # the rule says of that log
    harness, random = parcels.harness, Random(20261126)
    once, everything = await parcels.subscribe("once"), await parcels.subscribe("all")
    numbers = [f"P{n}" for n in range(PARCELS)]
    streams = {number: _journeys(random, number, in_order=in_order) for number in numbers}
    kills = 0
    while any(streams.values()):
        # the next push of each parcel's order, or two of them: several sources of one parcel
        # are in progress at once
        pushed: dict[str, list[bytes]] = {carrier_id: [] for carrier_id in SOURCES}
        for stream in streams.values():
            for carrier_id, body in [stream.pop(0) for _ in stream[: random.randint(1, 2)]]:
                pushed[carrier_id].append(body)
        for carrier_id, bodies in pushed.items():
            await harness.push(*bodies, carrier_id=carrier_id)
        kills += await _work_with_kills(harness, random)
    assert kills
    await check_log(harness.connection, harness.keyring)
    changes: dict[str, list[SourceChange]] = {number: [] for number in numbers}
    for shipment, carrier_id, number, *change in await harness.rows(IN_ORDER):
        changes[number].append(SourceChange(ParcelSource(shipment, carrier_id, number), *change))
    told = await harness.rows(
        "SELECT shipment_id, sequence FROM statesvc.notification WHERE subscription_id = %s", once
    )
    assert set(told) == {
        (one.source.shipment_id, one.sequence)
        for said in changes.values()
        for one in notified_changes(said)
    }
    assert len(told) == len(set(told))
    whole = 0
    for said in changes.values():
        statuses = [change.to_status for change in notified_changes(said)]
        assert statuses[-1] == "delivered"
        assert Counter(statuses) <= Counter(JOURNEY), "each turn of a status once"
        of_sources = {
            one.source: [each.to_status for each in said if each.source == one.source]
            for one in said
        }
        if all(of_source == list(JOURNEY) for of_source in of_sources.values()):
            assert statuses == list(JOURNEY), "what all say is told in its order"
            whole += 1
    assert whole or not in_order
    assert await harness.value(
        "SELECT count(*) FROM statesvc.notification WHERE subscription_id = %s", everything
    ) == sum(map(len, changes.values()))


async def _work_with_kills(harness: WorkerHarness, random: Random) -> int:
    """Run four workers at once until nothing waits; sessions of some are ended in their
    transactions, and their leases rescued.
    """
    kills = 0
    while await harness.value("SELECT count(*) FROM statesvc.inbox"):
        batches = [messages for _ in range(4) if (messages := await harness.claim(64))]
        work = [asyncio.ensure_future(harness.process(messages)) for messages in batches]
        if random.random() < 0.4:
            killed = 0
            while not killed and not all(one.done() for one in work):
                killed = await harness.value(KILL)
            kills += killed
        await asyncio.gather(*work, return_exceptions=True)
        if not batches:
            await asyncio.sleep(0.01)
    return kills

"""Coalescing when too much waits: what collapses, what it says, and that nothing is lost without a
word.
"""

import asyncio
import hashlib
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from psycopg import AsyncConnection
from psycopg.errors import UniqueViolation

from events.crypto.keyring import ended_context
from events.entry.kinds import leaf_hash_of
from events.identity.ids import webhook_id
from statesvc.delivery.attempt_part import opened_part, parts_by_number
from statesvc.log.json_compression import decompress_json, open_part
from statesvc.notifier.coalesce import Coalescer, overfull
from statesvc.notifier.housekeeping import BacklogBound
from statesvc.subscriptions import subscription_store as store
from tests.world.waiting import until

FEW = BacklogBound(count_max=5)
DAY = 24 * 3600


async def coalesce(world: Any, **bound: Any) -> int:
    left_out = 0
    coalescer = Coalescer()
    for backlog in await overfull(
        world.connection, **{"count_max": 5, "age_seconds": DAY, **bound}
    ):
        left_out += await coalescer.coalesce(world.connection, backlog)
    return left_out


async def waiting(world: Any) -> list[tuple[UUID, int]]:
    return [(row[0], row[1]) for row in await world.outbox()]


async def test_beyond_the_bound_the_latest_of_each_shipment_stands_for_those_before_it(
    world: Any, receiver: Any
) -> None:
    subscription_id = await world.subscribe()
    busy, _ = await world.shipment()
    quiet, _ = await world.shipment()
    await world.notify(busy, 1, 3, 4, 7, 9)
    await world.notify(quiet, 2)
    assert await coalesce(world) == 4
    assert sorted(await waiting(world)) == sorted([(busy, 9), (quiet, 2)])
    async with world.notifier():
        await until(lambda: len(receiver.received) == 2)
    got_by_sequence = {got.data["sequence"]: got for got in receiver.received}
    assert got_by_sequence[9].data["gap"] == {"skipped": 4, "from_sequence": 1, "to_sequence": 7}
    assert "gap" not in got_by_sequence[2].data
    got_by_sequence[9].verify(world.secrets[subscription_id])


async def test_what_is_too_old_collapses_and_its_neighbours_do_not(world: Any) -> None:
    await world.subscribe()
    old, _ = await world.shipment()
    await world.notify(old, 1)
    await world.database.clock.advance(DAY + 1)
    new, _ = await world.shipment()
    await world.notify(old, 2)
    await world.notify(new, 1, 2)
    assert await coalesce(world) == 1
    assert sorted(await waiting(world)) == sorted([(old, 2), (new, 1), (new, 2)])


async def test_a_subscription_that_opted_out_gets_each_one_however_late(world: Any) -> None:
    await world.subscribe(coalesce=False)
    await world.notify((await world.shipment())[0], *range(1, 20))
    await world.database.clock.advance(10 * DAY)
    assert await coalesce(world) == 0
    assert len(await waiting(world)) == 19


async def test_what_is_under_way_is_left_alone_and_sent_before(world: Any, receiver: Any) -> None:
    await world.notified_shipment(*range(1, 9))
    answered = receiver.hold()
    async with world.notifier() as notifier:
        await until(lambda: receiver.received)
        assert await coalesce(world) == 6
        receiver.answer = None
        answered.set()
        await until(lambda: len(receiver.received) == 2 and notifier.in_flight == 0)
    assert [got.data["sequence"] for got in receiver.received] == [1, 8]
    assert receiver.received[1].data["gap"] == {"skipped": 6, "from_sequence": 2, "to_sequence": 7}


async def test_what_was_sent_before_never_gets_another_body(world: Any) -> None:
    await world.notified_shipment(*range(1, 9))
    await world.connection.execute("UPDATE statesvc.outbox SET attempts = 1 WHERE sequence = 8")
    assert await coalesce(world) == 0


async def test_one_that_stands_for_others_is_given_no_more(world: Any) -> None:
    shipment_id = await world.notified_shipment(*range(1, 9))
    assert await coalesce(world) == 7
    await world.connection.execute(
        "INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at,"
        " created_at) SELECT o.subscription_id, o.shipment_id, 3, o.available_at, o.created_at"
        " FROM statesvc.outbox o"
    )
    assert await coalesce(world, count_max=1) == 0
    assert sorted(await waiting(world)) == [(shipment_id, 3), (shipment_id, 8)]


async def test_a_gap_counts_the_gaps_that_it_swallows(world: Any, receiver: Any) -> None:
    shipment_id = await world.notified_shipment(*range(1, 7))
    assert await coalesce(world) == 5
    await world.notify(shipment_id, *range(7, 13))
    assert await coalesce(world) == 6
    async with world.notifier():
        await until(lambda: receiver.received)
    assert receiver.received[0].data["sequence"] == 12
    assert receiver.received[0].data["gap"] == {
        "skipped": 11,
        "from_sequence": 1,
        "to_sequence": 11,
    }


async def test_the_entry_of_the_one_that_stood_for_others_covers_them_and_lists_the_tries_at_them(
    world: Any, receiver: Any
) -> None:
    await world.subscribe()
    shipment_id, key = await world.shipment()
    receiver.statuses(500, 200)
    await world.notify(shipment_id, 1)
    async with world.notifier() as notifier:
        await until(lambda: receiver.received and notifier.in_flight == 0)
        assert await world.ends() == [], "it has not ended"
        await world.notify(shipment_id, *range(2, 7))
        assert await coalesce(world) == 5
        await world.wake()
        await until(lambda: len(receiver.received) == 2 and notifier.in_flight == 0)
    ((canonical, sealed),) = await world.rows("SELECT canonical, sealed_part FROM statesvc.attempt")
    document = orjson.loads(decompress_json(canonical))
    assert (
        document["sequence"],
        document["outcome"],
        [one["number"] for one in document["tries"]],
    ) == (6, "delivered", [1])
    assert document["gap"] == receiver.received[1].data["gap"]
    assert [one["sequence"] for one in document["covers"]] == [1, 2, 3, 4, 5]
    assert [("tries" in one) for one in document["covers"]] == [True, False, False, False, False]
    part = opened_part(
        open_part(key, sealed, ended_context(shipment_id, document["webhook_id"], 1))
    )
    (before,) = document["covers"][0]["tries"]
    for one, received, covered in (
        (document["tries"][0], receiver.received[1], None),
        (before, receiver.received[0], 1),
    ):
        salt = bytes.fromhex(parts_by_number(part, covered)[1]["body_salt"])
        assert hashlib.sha256(salt + received.body).hexdigest() == one["body_commitment"]
    assert await world.rows("SELECT FROM statesvc.open_attempt") == []


async def test_one_that_was_left_out_is_replayed_under_its_own_id(
    world: Any, receiver: Any
) -> None:
    subscription_id = await world.subscribe()
    shipment_id, _ = await world.shipment()
    await world.notify(shipment_id, *range(1, 7))
    await coalesce(world)
    await world.connection.execute(
        "INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at,"
        " created_at) VALUES (%s, %s, 3, statesvc.clock(), statesvc.clock())",
        (subscription_id, shipment_id),
    )
    async with world.notifier():
        await until(lambda: len(receiver.received) == 2)
    ids = dict(await world.rows("SELECT sequence, webhook_id FROM statesvc.notification"))
    assert [(got.data["sequence"], got.webhook_id) for got in receiver.received] == [
        (3, ids[3]),
        (6, ids[6]),
    ]


async def test_two_at_once_leave_out_each_one_once(world: Any) -> None:
    await world.subscribe()
    for _ in range(30):
        await world.notify((await world.shipment())[0], 1, 2, 3)
    (backlog,) = await overfull(world.connection, count_max=5, age_seconds=DAY)
    async with await AsyncConnection.connect(world.database.service_dsn, autocommit=True) as other:
        counts = await asyncio.gather(
            *(Coalescer().coalesce(connection, backlog) for connection in (world.connection, other))
        )
    assert sum(counts) == 60
    assert len(await waiting(world)) == 30
    assert await world.rows("SELECT sum(cardinality(covers)) FROM statesvc.notification_gap") == [
        (60,)
    ]


async def test_a_running_notifier_keeps_the_backlog_of_a_paused_subscription_within_its_bound(
    world: Any,
) -> None:
    subscription_id = await world.subscribe()
    await store.change_state(world.connection, subscription_id, "pause", actor="key:test")
    shipment_id, _ = await world.shipment()
    await world.notify(shipment_id, *range(1, 30))

    async def collapsed() -> bool:
        return await waiting(world) == [(shipment_id, 29)]

    async with world.notifier(backlog=FEW):
        await until(collapsed)


async def notified(world: Any) -> list[Any]:
    return list(
        await world.rows(
            "SELECT subscription_id, shipment_id, sequence, webhook_id FROM statesvc.notification"
            " ORDER BY sequence"
        )
    )


async def test_a_change_is_written_once_and_never_again(world: Any) -> None:
    await world.subscribe()
    await world.subscribe()
    shipment_id = uuid4()
    assert await world.notify(shipment_id, 1, 2) == 4
    with pytest.raises(UniqueViolation):
        await world.notify(shipment_id, 1, 2)
    assert len(await world.outbox()) == 4
    assert len(await world.rows("SELECT FROM statesvc.fanout")) == 2


async def test_one_entry_a_change_says_to_whom_it_goes_and_none_is_written_where_nobody_asked(
    world: Any,
) -> None:
    await world.notify(uuid4(), 1)
    assert await world.rows("SELECT FROM statesvc.fanout") == []
    ids = sorted([await world.subscribe(), await world.subscribe(), await world.subscribe()])
    await world.subscribe(statuses=["delivered"])
    shipment_id = uuid4()
    await world.notify(shipment_id, 7)
    (change,) = world.changes(shipment_id, 7)
    ((subscriptions, stored),) = await world.rows(
        "SELECT subscriptions, canonical FROM statesvc.fanout"
    )
    canonical = decompress_json(stored)
    document, leaf_hash = orjson.loads(canonical), leaf_hash_of(canonical)
    assert (subscriptions, document["subscriptions"]) == (ids, [str(one) for one in ids])
    assert (document["event"], document["from"], document["to"], document["sequence"]) == (
        change.leaf_hash.hex(),
        "unknown",
        "in_transit",
        7,
    )
    assert await world.rows(
        "SELECT entries, leaf_hashes FROM statesvc.batch WHERE writer = 'worker-1'"
    ) == [(1, leaf_hash)]
    derived = {webhook_id(one, bytes.fromhex(document["event"])) for one in ids}
    assert {row[3] for row in await notified(world)} == derived, "the ids follow from the entry"


async def test_the_webhook_id_is_a_hash_of_the_subscription_and_the_event_s_leaf(
    world: Any,
) -> None:
    subscription_id, shipment_id = await world.subscribe(), uuid4()
    await world.notify(shipment_id, 7)
    (change,) = world.changes(shipment_id, 7)
    digest = hashlib.sha256(subscription_id.bytes + change.leaf_hash).hexdigest()
    assert await notified(world) == [(subscription_id, shipment_id, 7, f"n1-{digest[:32]}")]


@pytest.mark.parametrize(
    ("filters", "matches"),
    [
        ({}, True),
        ({"carriers": ["ups", "fedex"]}, True),
        ({"carriers": ["fedex"]}, False),
        ({"statuses": ["in_transit"]}, True),
        ({"statuses": ["delivered"]}, False),
        ({"types": ["shipment.status_changed"]}, True),
        ({"types": ["shipment.updated"]}, False),
        ({"carriers": ["ups"], "statuses": ["delivered"]}, False),
    ],
)
async def test_a_change_goes_to_the_subscriptions_that_ask_for_its_kind(
    world: Any,
    filters: dict[str, list[str]],
    matches: bool,  # noqa: FBT001
) -> None:
    await world.subscribe(**filters)
    assert await world.notify(uuid4(), 1) == int(matches)


async def test_paused_subscriptions_collect_disabled_and_deleted_ones_do_not(world: Any) -> None:
    ids: dict[str, UUID] = {
        name: await world.subscribe() for name in ("paused", "disabled", "deleted")
    }
    await store.change_state(world.connection, ids["paused"], "pause", actor="key:test")
    await store.change_state(world.connection, ids["deleted"], "delete", actor="key:test")
    await world.connection.execute(
        "UPDATE statesvc.subscription SET disabled_at = statesvc.clock() WHERE subscription_id"
        " = %s",
        (ids["disabled"],),
    )
    assert await world.notify(uuid4(), 1) == 1
    assert [row[0] for row in await notified(world)] == [ids["paused"]]


async def test_a_watched_shipment_is_notified_whatever_its_discriminator_and_no_other(
    world: Any,
) -> None:
    shipment_id, _ = await world.shipment()
    other_id, _ = await world.shipment()
    await world.subscribe(shipments=[f"ups/{shipment_id.hex}"])
    assert await world.notify(other_id, 1) == 0
    assert await world.notify(shipment_id, 1) == 1

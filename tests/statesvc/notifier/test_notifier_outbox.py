"""Writing notifications: which subscriptions get one, and that it stays one."""

import hashlib
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from psycopg.errors import UniqueViolation

from events.entry.kinds import leaf_hash_of
from events.identity.ids import webhook_id
from statesvc.log.json_compression import decompress_json
from statesvc.subscriptions import subscription_store as store


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

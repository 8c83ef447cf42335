"""Content of a full payload: the event and the state right after it, as the log has them; personal
fields for those allowed alone.
"""

import time
from typing import Any

import orjson

from events.vocabulary import Status
from statesvc.delivery.limiter.permits import Permits
from statesvc.delivery.notification import body_of
from statesvc.notifier.turn import Turn
from statesvc.subscriptions import subscription_store as store
from tests.contract import hook_validator
from tests.world.deliver import claim

THIN = {"carrier_id", "tracking_number", "from", "to", "occurred_at", "sequence"}


async def subscribe(api: Any, **wish: Any) -> None:
    await store.create(
        api.connection,
        api.keyring,
        store.SubscriptionRequest(url="https://subscriber.invalid/", **wish),
        actor="key:test",
        owner="bootstrap",
    )


async def bodies(api: Any) -> list[dict[str, Any]]:
    """Return the bodies of what may be sent now, as the next attempt would send it;
    the leases end at once.
    """
    asked = Turn(
        worker="notifier-1", lease_seconds=0, offer=Permits(256).offer(time.time(), limit=64)
    )
    deliveries = await claim(api.connection, api.keyring, asked)
    sent = [
        orjson.loads(body_of(one.notification))
        for one in sorted(deliveries, key=lambda one: one.sequence)
    ]
    for body in sent:
        hook_validator().validate(body)
    return [body["data"] for body in sent]


async def test_it_holds_the_event_and_the_state_right_after_it_the_same_at_every_attempt(
    api: Any, scan: Any
) -> None:
    await subscribe(api, payload="full")
    await api.carriers.push(scan("1Z1", Status.PICKED_UP, description="Alice handed it over"))
    (first,) = await bodies(api)
    assert first.keys() == THIN | {"event", "shipment", "erased"}
    shown = (await api.get("/v1/shipments/ups/1Z1")).body
    assert first["shipment"] == {
        name: value
        for name, value in shown.items()
        if name not in {"erased", "others", "is_signed"}
    }
    (listed,) = (await api.get("/v1/shipments/ups/1Z1/history")).body["items"]
    assert first["event"] == {name: listed[name] for name in first["event"]}
    assert b"Alice" not in orjson.dumps(first)
    await api.carriers.push(scan("1Z1", Status.IN_TRANSIT, minutes=5))
    await api.carriers.execute(
        "UPDATE statesvc.outbox SET available_at = statesvc.clock() WHERE sequence = 1"
    )
    assert await bodies(api) == [first], "what came since changes nothing"


async def test_personal_fields_are_for_those_allowed_and_absent_once_erased(
    api: Any, scan: Any
) -> None:
    await subscribe(api, payload="full", pii=True)
    await api.carriers.push(
        scan("1Z1", Status.DELIVERED, description="Left with Alice", signed_by="ALICE")
    )
    (told,) = await bodies(api)
    assert (
        told["event"]["description"],
        told["event"]["signed_by"],
        told["shipment"]["signed_by"],
    ) == (
        "Left with Alice",
        "ALICE",
        "ALICE",
    )
    assert told["erased"] is False
    await api.carriers.execute(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock()"
    )
    (after,) = await bodies(api)
    assert after["erased"] is True
    assert after["event"].keys() == told["event"].keys() - {
        "description",
        "signed_by",
        "delivery_address",
    }
    assert after["shipment"] == {
        name: value for name, value in told["shipment"].items() if name != "signed_by"
    }

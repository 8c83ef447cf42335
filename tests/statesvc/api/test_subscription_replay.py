"""A subscriber is told a range again: what it was told and did not take, and what came while it was
disabled; each under its one id.
"""

import time
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
import pytest

from events.vocabulary import Status
from statesvc.delivery.limiter.permits import Permits
from statesvc.delivery.notification import body_of
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.http.keys.key_store import Scope, create_key
from statesvc.notifier.turn import Turn
from statesvc.subscriptions import replay as replaying
from tests.contract import hook_validator
from tests.world.deliver import claim, deliver

PATH = "/v1/subscriptions"
LONG_AGO = "2026-01-01T00:00:00Z"


async def subscribe(api: Any, *, scopes: str = "subscriptions", **wish: Any) -> str:
    made = await api.call(
        "POST", PATH, scopes=scopes, json={"url": "https://subscriber.invalid/", **wish}
    )
    assert made.status == 201, made.body
    subscription_id: str = made.body["id"]
    return subscription_id


async def replay(
    api: Any, subscription_id: str, *, scopes: str = "subscriptions", **wish: Any
) -> Any:
    reply = await api.call(
        "POST", f"{PATH}/{subscription_id}/replay", scopes=scopes, json={"since": LONG_AGO, **wish}
    )
    return reply.body


def counts(body: Any) -> tuple[int, ...]:
    return tuple(body[name] for name in ("matched", "put", "never_written", "waiting", "delivered"))


async def rows(api: Any, query: str, *parameters: Any) -> list[Any]:
    return list(await api.rows(query, parameters))


async def set_disabled(api: Any, subscription_id: str, *, disabled: bool) -> None:
    if disabled:
        query = (
            "UPDATE statesvc.subscription SET disabled_at = statesvc.clock(), missed_since ="
            " statesvc.clock() WHERE subscription_id = %s"
        )
        await api.carriers.execute(query, [subscription_id])
    else:
        assert (
            await api.call("POST", f"{PATH}/{subscription_id}/resume", scopes="subscriptions")
        ).status == 200


async def deliver_all(api: Any) -> None:
    """Take each notification in the outbox at its second attempt."""
    await deliver(api.carriers.connection, api.carriers.keyring, AttemptOutcome.REFUSED, 503)
    await api.carriers.execute("UPDATE statesvc.outbox SET available_at = statesvc.clock()")
    await deliver(api.carriers.connection, api.carriers.keyring)


async def test_what_came_while_it_was_disabled_is_written_from_the_log_under_the_id_that_it_would_have_had(
    api: Any, scan: Any
) -> None:
    witness, subscription_id = await subscribe(api), await subscribe(api)
    await api.carriers.push(scan("1Z1", Status.PICKED_UP))
    await set_disabled(api, subscription_id, disabled=True)
    await api.carriers.push(scan("1Z1", Status.IN_TRANSIT, minutes=5))
    await api.carriers.push(scan("1z-2", Status.IN_TRANSIT, minutes=6))
    assert (await replay(api, subscription_id))["code"] == "conflict"
    assert counts(await replay(api, subscription_id, dry_run=True)) == (3, 2, 2, 1, 0)
    assert (
        len(
            await rows(
                api, "SELECT FROM statesvc.outbox WHERE subscription_id = %s", subscription_id
            )
        )
        == 1
    ), "a plan changes nothing"
    await set_disabled(api, subscription_id, disabled=False)
    shown = (await api.get(f"{PATH}/{subscription_id}", scopes="subscriptions")).body
    done = await replay(api, subscription_id, since=shown["missed_since"])
    assert (counts(done), done["next_cursor"]) == ((2, 2, 2, 0, 0), None)
    told = (
        "SELECT shipment_id, sequence, type, carrier_id, tracking_number, from_status, to_status,"
        " occurred_at FROM statesvc.notification"
    )
    assert await rows(
        api, f"{told} WHERE subscription_id = %s ORDER BY 1, 2", subscription_id
    ) == await rows(api, f"{told} WHERE subscription_id = %s ORDER BY 1, 2", witness)
    digests = await rows(
        api,
        "SELECT n.webhook_id = statesvc.webhook_id(n.subscription_id,"
        " statesvc.leaf_hash(b.leaf_hashes, e.ordinal)) FROM statesvc.notification n JOIN"
        " statesvc.event e ON e.shipment_id = n.shipment_id AND e.version = n.sequence JOIN"
        " statesvc.batch b ON b.batch_id = e.batch_id WHERE n.subscription_id = %s",
        subscription_id,
    )
    assert digests == [(True,)] * 3
    assert (
        len(
            await rows(
                api, "SELECT FROM statesvc.outbox WHERE subscription_id = %s", subscription_id
            )
        )
        == 3
    )
    assert (await api.get(f"{PATH}/{subscription_id}", scopes="subscriptions")).body[
        "missed_since"
    ] is None
    again = await replay(api, subscription_id)
    assert counts(again) == (3, 0, 0, 3, 0), "a second replay puts nothing twice"
    assert "outbox" in api.woken[-1]


async def test_what_was_taken_is_left_out_unless_asked_for_and_attempts_are_numbered_on(
    api: Any, scan: Any
) -> None:
    subscription_id = await subscribe(api)
    await api.carriers.push(scan("1Z1", Status.PICKED_UP))
    await deliver_all(api)
    assert counts(await replay(api, subscription_id)) == (1, 0, 0, 0, 1)
    (before,) = await rows(api, "SELECT webhook_id FROM statesvc.notification")
    assert counts(await replay(api, subscription_id, delivered_too=True)) == (1, 1, 0, 0, 0)
    assert await rows(api, "SELECT replayed FROM statesvc.fanout ORDER BY batch_id") == [
        (False,),
        (True,),
    ], "what is sent again is bound"
    assert await rows(api, "SELECT attempts, earlier_attempts FROM statesvc.outbox") == [(0, 2)]
    assert await rows(api, "SELECT webhook_id FROM statesvc.notification") == [before]


async def test_dead_letters_of_what_is_replayed_are_settled(api: Any, scan: Any) -> None:
    subscription_id = await subscribe(api)
    await api.carriers.push(scan("1Z1", Status.PICKED_UP))
    await api.carriers.execute(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, webhook_id, detail,"
        " attempts, subscription_id, shipment_id, sequence) SELECT 'notification',"
        " 'delivery_exhausted', 'ups', statesvc.clock(), n.webhook_id, '', 10, n.subscription_id,"
        " n.shipment_id, n.sequence FROM statesvc.notification n"
    )
    await api.carriers.execute("DELETE FROM statesvc.outbox")
    done = await replay(api, subscription_id)
    assert counts(done) == (1, 1, 0, 0, 0)
    assert await rows(
        api, "SELECT resolution, run_id, resolved_by LIKE 'key:%%' FROM statesvc.dead_letter"
    ) == [("replayed", UUID(done["run_id"]), True)]
    ((target, canonical),) = await rows(
        api, "SELECT target, canonical FROM statesvc.action WHERE verb = 'subscription.replay'"
    )
    assert target == f"subscription {subscription_id}"
    assert b'"put":1' in canonical


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, 3),
        ({"carriers": ["fedex"]}, 0),
        ({"statuses": ["in_transit"]}, 2),
        ({"types": ["shipment.updated"]}, 0),
        ({"shipments": [{"carrier_id": "ups", "tracking_number": "1z 1"}]}, 2),
        ({"shipments": [{"carrier_id": "fedex", "tracking_number": "1Z1"}]}, 0),
    ],
)
async def test_only_what_the_subscription_wants_is_made(
    api: Any, scan: Any, filters: dict[str, Any], expected: int
) -> None:
    subscription_id = await subscribe(api, **filters)
    await set_disabled(api, subscription_id, disabled=True)
    await api.carriers.push(scan("1Z1", Status.PICKED_UP))
    await api.carriers.push(scan("1Z1", Status.IN_TRANSIT, minutes=5))
    await api.carriers.push(scan("1Z2", Status.IN_TRANSIT, minutes=6))
    assert counts(await replay(api, subscription_id, dry_run=True)) == (
        expected,
        expected,
        expected,
        0,
        0,
    )


async def test_a_range_is_worked_off_in_parts_that_neither_skip_nor_repeat(
    api: Any, scan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "PAGE_ROWS", 2)
    monkeypatch.setattr(replaying, "WINDOW_ROWS", 3)
    monkeypatch.setattr(replaying, "CALL_ROWS", 3)
    subscription_id = await subscribe(api, carriers=["ups"])
    await set_disabled(api, subscription_id, disabled=True)
    for place in range(11):
        await api.carriers.push(scan(f"1Z{place}", Status.IN_TRANSIT, minutes=place))
        await api.carriers.push(
            scan(f"F{place}", Status.IN_TRANSIT, minutes=place), carrier_id="fedex"
        )
    await set_disabled(api, subscription_id, disabled=False)
    put, cursor, calls, runs = 0, None, 0, set()
    while True:
        done = await replay(api, subscription_id, cursor=cursor)
        put, cursor, calls = put + done["put"], done["next_cursor"], calls + 1
        runs.add(done["run_id"])
        if cursor is None:
            break
    assert (put, len(runs)) == (11, 1)
    assert calls > 2
    assert len(await rows(api, "SELECT FROM statesvc.outbox")) == 11
    assert (await replay(api, subscription_id, cursor="forged"))["code"] == "invalid_cursor"


async def test_a_closed_range_ends_where_it_says_and_what_was_missed_after_it_stays_missed(
    api: Any, scan: Any
) -> None:
    subscription_id = await subscribe(api)
    await set_disabled(api, subscription_id, disabled=True)
    await api.carriers.push(scan("1Z1", Status.PICKED_UP))
    ((middle,),) = await rows(api, "SELECT statesvc.clock()")
    await api.carriers.push(scan("1Z1", Status.IN_TRANSIT, minutes=5))
    await set_disabled(api, subscription_id, disabled=False)
    assert counts(await replay(api, subscription_id, until=middle.isoformat())) == (1, 1, 1, 0, 0)
    shown = (await api.get(f"{PATH}/{subscription_id}", scopes="subscriptions")).body
    assert datetime.fromisoformat(shown["missed_since"]) == middle
    assert counts(await replay(api, subscription_id, since=shown["missed_since"])) == (
        1,
        1,
        1,
        0,
        0,
    )
    assert (await api.get(f"{PATH}/{subscription_id}", scopes="subscriptions")).body[
        "missed_since"
    ] is None


async def test_a_range_before_the_subscription_was_made_is_for_keys_that_may_read(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(scan("1Z1", Status.PICKED_UP))
    await api.carriers.push(scan("1Z2", Status.PICKED_UP), carrier_id="fedex")
    both = "subscriptions read"
    made = await api.call(
        "POST", PATH, scopes=both, json={"url": "https://subscriber.invalid/", "carriers": ["ups"]}
    )
    subscription_id = made.body["id"]
    assert counts(await replay(api, subscription_id, scopes=both, dry_run=True)) == (1, 1, 1, 0, 0)
    done = await replay(api, subscription_id, scopes=both)
    assert (counts(done), datetime.fromisoformat(done["since"])) == (
        (1, 1, 1, 0, 0),
        datetime.fromisoformat(LONG_AGO),
    )
    assert await rows(api, "SELECT carrier_id, type, to_status FROM statesvc.notification") == [
        ("ups", "shipment.status_changed", "picked_up")
    ]
    assert counts(await replay(api, subscription_id, scopes=both)) == (1, 0, 0, 1, 0), (
        "a second replay puts nothing twice"
    )
    # a key of the same owner that may not read gets what is the subscription's own
    _, key = await create_key(
        api.connection,
        name="plain",
        scopes=[Scope.SUBSCRIPTIONS],
        created_by="test",
        owner=made.body["owner"],
    )
    plain = await api.client.post(
        f"{PATH}/{subscription_id}/replay",
        json={"since": LONG_AGO, "dry_run": True},
        headers={"Authorization": f"Bearer {key}"},
    )
    assert (await plain.json())["since"] == made.body["created_at"]


async def test_a_range_that_is_none_and_a_subscription_that_is_none_are_refused(api: Any) -> None:
    subscription_id = await subscribe(api)
    assert (await replay(api, subscription_id, until=LONG_AGO))["code"] == "invalid_request"
    assert (await replay(api, "00000000-0000-0000-0000-000000000000"))["code"] == "not_found"
    assert (await replay(api, subscription_id, since="yesterday"))["code"] == "invalid_request"


THIN = {"carrier_id", "tracking_number", "from", "to", "occurred_at", "sequence"}


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
    await subscribe(api, scopes="admin", payload="full")
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
    await subscribe(api, scopes="admin", payload="full", pii=True)
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

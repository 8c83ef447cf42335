from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from events.vocabulary import Status
from statesvc.api.call_limits import CallLimits
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.subscriptions import subscription_store as store
from tests.world.deliver import deliver


async def audit(api: Any, number: str, *, scopes: str = "audit", **query: str) -> Any:
    reply = await api.get(f"/v1/shipments/ups/{number}/audit", scopes=scopes, params=query)
    assert reply.status == 200, reply.body
    return reply.body


async def test_events_stand_in_recorded_order_with_message_normalizer_and_a_chain_of_hashes(
    api: Any, scan: Any
) -> None:
    first = await api.carriers.push(scan("1", Status.DELIVERED, minutes=60))
    second = await api.carriers.push(scan("1", Status.PICKED_UP))
    events = (await audit(api, "1"))["events"]
    assert [(event["version"], event["message_id"], event["status"]) for event in events] == [
        (1, str(first), "delivered"),
        (2, str(second), "picked_up"),
    ]
    assert [event["previous_hash"] for event in events] == ["00" * 32, events[0]["leaf_hash"]]
    assert {(event["normalizer"], event["normalizer_version"]) for event in events} == {
        ("ups", "1")
    }
    assert events[0]["recorded_at"] < events[1]["recorded_at"]


async def test_transitions_say_what_moved_and_why(api: Any, scan: Any) -> None:
    await api.carriers.push(scan("2", Status.PICKED_UP))
    message_id = await api.carriers.push(scan("2", Status.DELIVERED, minutes=1))
    record = await audit(api, "2")
    moves = [(move["from"], move["to"], move["sequence"]) for move in record["transitions"]]
    assert moves == [("unknown", "picked_up", 1), ("picked_up", "delivered", 2)]
    last, event = record["transitions"][-1], record["events"][-1]
    assert (last["event_id"], last["message_id"], last["worker"]) == (
        event["event_id"],
        str(message_id),
        "worker-1",
    )
    assert last["recorded_at"] == event["recorded_at"]


async def test_a_contradiction_is_shown_once_with_its_count_on_both_shipments(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(
        scan("3", Status.PICKED_UP, native_id="S1"), scan("4", Status.PICKED_UP)
    )
    for _ in range(3):
        await api.carriers.push(scan("4", Status.DELIVERED, native_id="S1", signed_by="A. Person"))
    for number in "34":
        (conflict,) = (await audit(api, number))["conflicts"]
        assert (conflict["event_id"], conflict["count"], conflict["tracking_number"]) == (
            "S1",
            3,
            "4",
        )
        assert "signed_by" not in conflict
    assert conflict["shipment_id"] == (await audit(api, "3"))["shipment"]["shipment_id"]
    assert conflict["claimed_shipment_id"] == (await audit(api, "4"))["shipment"]["shipment_id"]
    (opened,) = (await audit(api, "4", scopes="audit pii", include="personal"))["conflicts"]
    assert opened["signed_by"] == "A. Person"


async def subscribed(api: Any) -> None:
    request = store.SubscriptionRequest(url="https://example.test/hook")
    await store.create(
        api.carriers.connection, api.carriers.keyring, request, actor="test", owner="bootstrap"
    )


async def test_notifications_come_with_their_fan_outs_their_end_and_all_tries(
    api: Any, scan: Any, database: Any, owner: AsyncConnection[Any]
) -> None:
    await subscribed(api)
    await api.carriers.push(scan("5", Status.DELIVERED))
    (waiting,) = (await audit(api, "5"))["notifications"]
    assert (waiting["waiting"], waiting["outcome"], waiting["attempts"], waiting["to"]) == (
        True,
        None,
        [],
        "delivered",
    )
    assert [one["replayed"] for one in waiting["fanouts"]] == [False]
    await deliver(api.carriers.connection, api.carriers.keyring, AttemptOutcome.REFUSED, 503)
    (refused,) = (await audit(api, "5"))["notifications"]
    assert refused | {"next_attempt_at": None} == waiting | {"next_attempt_at": None}, (
        "bound, and listed, with its end"
    )
    await database.clock.advance(60)
    await deliver(api.carriers.connection, api.carriers.keyring)
    subscription_id = UUID(waiting["subscription_id"])
    await store.change_state(
        api.carriers.connection, subscription_id, "delete", actor="test", why="it has moved"
    )
    (notified,) = (await audit(api, "5"))["notifications"]
    assert notified["receiver"] == "example.test", "kept when the subscription is deleted"
    assert (notified["waiting"], notified["outcome"], notified["webhook_id"]) == (
        False,
        "delivered",
        waiting["webhook_id"],
    )
    assert [(attempt["number"], attempt["status_code"]) for attempt in notified["attempts"]] == [
        (1, 503),
        (2, 204),
    ]
    await owner.execute(
        "TRUNCATE statesvc.notification, statesvc.notification_gap, statesvc.open_attempt,"
        " statesvc.outbox"
    )
    assert (await audit(api, "5"))["notifications"] == [notified], "the log alone says it"


@pytest.mark.parametrize("call_limits", [CallLimits(audited_events=2)])
async def test_a_very_long_audit_is_read_in_windows_that_lose_nothing(api: Any, scan: Any) -> None:
    for place, status in enumerate(
        (Status.PICKED_UP, Status.IN_TRANSIT, Status.OUT_FOR_DELIVERY, Status.DELIVERED)
    ):
        await api.carriers.push(scan("6", status, minutes=place, native_id=f"W{place}"))
        await api.carriers.push(scan("6", Status.LOST, minutes=50, native_id=f"W{place}"))
    first = await audit(api, "6")
    rest = await audit(api, "6", cursor=first["next_cursor"])
    assert rest["next_cursor"] is None
    assert [len(window["events"]) for window in (first, rest)] == [2, 2]
    events, transitions, conflicts = (
        first[part] + rest[part] for part in ("events", "transitions", "conflicts")
    )
    assert [event["version"] for event in events] == [1, 2, 3, 4]
    assert [move["sequence"] for move in transitions] == [1, 2, 3, 4]
    assert [conflict["event_id"] for conflict in conflicts] == [
        event["event_id"] for event in events
    ]


async def test_a_personal_part_that_does_not_open_is_never_shown_as_absent(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(
        scan("8", Status.DELIVERED, signed_by="A. Person"),
        scan("9", Status.DELIVERED, signed_by="B. Person"),
    )
    await api.carriers.execute(
        "UPDATE statesvc.stream s SET sealed_key = o.sealed_key FROM statesvc.stream o WHERE"
        " s.number = '8' AND o.number = '9'"
    )
    reply = await api.get(
        "/v1/shipments/ups/8/audit", scopes="audit pii", params={"include": "personal"}
    )
    assert (reply.status, reply.body["code"]) == (500, "internal_error")
    assert (await api.get("/v1/shipments/ups/8/audit", scopes="audit")).status == 200


async def test_a_conflict_tells_nothing_personal_once_either_shipment_is_erased(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(scan("4", Status.PICKED_UP))
    await api.carriers.push(scan("3", Status.DELIVERED, native_id="S1", signed_by="J. Doe"))
    await api.carriers.push(scan("4", Status.DELIVERED, native_id="S1", signed_by="R. Roe"))
    (opened,) = (await audit(api, "3", scopes="audit pii", include="personal"))["conflicts"]
    assert opened["signed_by"] == "R. Roe"
    claimed = opened["claimed_shipment_id"]
    await api.carriers.execute(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = now() WHERE shipment_id = %s",
        [claimed],
    )
    for number in ("3", "4"):
        (closed,) = (await audit(api, number, scopes="audit pii", include="personal"))["conflicts"]
        assert closed["signed_by"] is None

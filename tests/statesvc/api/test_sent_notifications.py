"""A subscriber sees what it was told: how each ended, its tries, the body as it was sent; and has
one sent again under its id.
"""

import asyncio
from typing import Any

import orjson

from events.vocabulary import Status
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.subscriptions import sent_notifications
from statesvc.subscriptions.sent_notifications import NotificationFilter, read_page
from tests.statesvc.api.test_subscription_replay import PATH, rows, set_disabled, subscribe
from tests.world.deliver import deliver


async def listed(
    api: Any, subscription_id: str, *, scopes: str = "subscriptions", **query: Any
) -> list[Any]:
    pages = await api.pages(f"{PATH}/{subscription_id}/notifications", scopes=scopes, **query)
    return [one for page in pages for one in page]


async def shown(
    api: Any, subscription_id: str, webhook_id: str, *, scopes: str = "subscriptions", **query: Any
) -> Any:
    reply = await api.get(
        f"{PATH}/{subscription_id}/notifications/{webhook_id}", scopes=scopes, params=query
    )
    assert reply.status == 200, reply.body
    return reply.body


async def resent(api: Any, subscription_id: str, webhook_id: str) -> Any:
    return await api.call(
        "POST",
        f"{PATH}/{subscription_id}/notifications/{webhook_id}/resend",
        scopes="subscriptions",
    )


async def sent(api: Any, *outcome: Any) -> list[str]:
    return await deliver(api.carriers.connection, api.carriers.keyring, *outcome)


async def test_notifications_are_listed_newest_first_with_their_tries_by_outcome_and_shipment(
    api: Any, scan: Any
) -> None:
    subscription_id = await subscribe(api)
    await api.carriers.push(scan("1Z1", Status.PICKED_UP))
    await sent(api)
    await api.carriers.push(scan("1Z1", Status.IN_TRANSIT, minutes=5))
    await sent(api, AttemptOutcome.REFUSED, 503)
    await api.carriers.push(scan("1Z-2", Status.IN_TRANSIT, minutes=6))
    found = await listed(api, subscription_id, limit=1)
    assert [(one["tracking_number"], one["outcome"]) for one in found] == [
        ("1Z-2", "waiting"),
        ("1Z1", "waiting"),
        ("1Z1", "delivered"),
    ]
    assert [
        [(each["outcome"], each["status_code"]) for each in one["attempts"]] for one in found
    ] == [
        [],
        [("refused", 503)],
        [("delivered", 204)],
    ]
    assert [one["next_attempt_at"] is None for one in found] == [False, False, True]
    assert [
        one["webhook_id"] for one in await listed(api, subscription_id, outcome="delivered")
    ] == [found[2]["webhook_id"]]
    assert [
        one["webhook_id"] for one in await listed(api, subscription_id, tracking_number="1z2")
    ] == [found[0]["webhook_id"]]
    assert await listed(api, subscription_id, tracking_number="1Z2", carrier_id="fedex") == []
    assert await listed(api, subscription_id, outcome="given_up") == []
    assert len(await listed(api, subscription_id, since=found[1]["created_at"])) == 2


async def test_a_filter_that_few_fit_goes_on_behind_its_window(api: Any, scan: Any) -> None:
    subscription_id = await subscribe(api)
    for minutes, status in enumerate(
        (Status.PICKED_UP, Status.IN_TRANSIT, Status.OUT_FOR_DELIVERY)
    ):
        await api.carriers.push(scan("1Z1", status, minutes=minutes))
        await sent(api)
    wanted = NotificationFilter(subscription_id=subscription_id, outcome="waiting")  # type: ignore[arg-type]
    found, goes_on = await read_page(
        api.carriers.connection, wanted, before=None, limit=5, window=2
    )
    assert found == []
    assert goes_on is not None
    assert await read_page(api.carriers.connection, wanted, before=goes_on, limit=5, window=2) == (
        [],
        None,
    )
    assert sent_notifications.WINDOW_ROWS > 2


async def test_a_body_is_shown_byte_for_byte_and_resent_under_its_id(api: Any, scan: Any) -> None:
    subscription_id = await subscribe(api)
    await api.carriers.push(scan("1Z1", Status.PICKED_UP))
    (one,) = await listed(api, subscription_id)
    waiting = await shown(api, subscription_id, one["webhook_id"])
    assert (waiting["body"], waiting["body_state"]) == (None, "not_sent")
    (body,) = await sent(api)
    seen = await shown(api, subscription_id, one["webhook_id"])
    assert (seen["body"], seen["body_state"], seen["outcome"]) == (body, "shown", "delivered")
    reply = await resent(api, subscription_id, one["webhook_id"])
    assert (reply.status, reply.body["outcome"], reply.body["webhook_id"]) == (
        200,
        "waiting",
        one["webhook_id"],
    )
    assert "outbox" in api.woken[-1]
    assert await sent(api) == [body], "the same bytes"
    again = await shown(api, subscription_id, one["webhook_id"])
    assert ([each["number"] for each in again["attempts"]], again["outcome"]) == (
        [1, 2],
        "delivered",
    )
    actions = await rows(
        api,
        "SELECT convert_from(canonical, 'UTF8')::jsonb FROM statesvc.action WHERE verb ="
        " 'subscription.resend'",
    )
    assert [(found["target"], found["details"]) for (found,) in actions] == [
        (f"subscription {subscription_id}", {"webhook_id": one["webhook_id"]})
    ]
    fanouts = await rows(api, "SELECT replayed FROM statesvc.fanout ORDER BY batch_id")
    assert fanouts == [(False,), (True,)], "the log says that it was sent again"


async def test_what_is_being_sent_is_not_sent_again_until_that_has_ended(
    api: Any, scan: Any
) -> None:
    subscription_id = await subscribe(api)
    await api.carriers.push(scan("1Z1", Status.PICKED_UP))
    (one,) = await listed(api, subscription_id)
    await api.carriers.execute(
        "UPDATE statesvc.outbox SET token = gen_random_uuid(), available_at = statesvc.clock() +"
        " interval '45 s'"
    )
    refused = await resent(api, subscription_id, one["webhook_id"])
    assert (refused.status, refused.body["detail"]) == (
        409,
        "it is being sent at this moment: ask again when that try has ended",
    )
    asked = asyncio.create_task(resent(api, subscription_id, one["webhook_id"]))
    await api.carriers.execute("DELETE FROM statesvc.outbox")
    reply = await asked
    assert (reply.status, reply.body["outcome"]) == (200, "waiting"), (
        "it ended while the call waited"
    )


async def test_what_waits_is_due_at_once_and_put_once(api: Any, scan: Any) -> None:
    subscription_id = await subscribe(api)
    await api.carriers.push(scan("1Z1", Status.PICKED_UP))
    await sent(api, AttemptOutcome.REFUSED, 503)
    await api.carriers.execute(
        "UPDATE statesvc.outbox SET available_at = statesvc.clock() + interval '10 hours'"
    )
    (one,) = await listed(api, subscription_id)
    for _ in range(2):
        assert (await resent(api, subscription_id, one["webhook_id"])).status == 200
    assert len(await rows(api, "SELECT FROM statesvc.outbox")) == 1
    assert len(await sent(api)) == 1


async def test_only_its_owner_sees_or_resends_one_and_none_while_disabled(
    api: Any, scan: Any
) -> None:
    subscription_id, other = await subscribe(api), await subscribe(api)
    await api.carriers.push(scan("1Z1", Status.PICKED_UP))
    await sent(api)
    (one,) = await listed(api, subscription_id)
    assert (await resent(api, other, one["webhook_id"])).status == 404
    assert (await resent(api, subscription_id, "n1-nothing")).status == 404
    await set_disabled(api, subscription_id, disabled=True)
    assert (await resent(api, subscription_id, one["webhook_id"])).status == 409


async def test_personal_fields_of_a_body_come_on_request_are_recorded_and_end_with_the_shipment(
    api: Any, scan: Any
) -> None:
    made = await api.call(
        "POST",
        PATH,
        scopes="subscriptions read pii",
        json={"url": "https://subscriber.invalid/", "payload": "full", "pii": True},
    )
    assert made.status == 201, made.body
    subscription_id = made.body["id"]
    await api.carriers.push(scan("1Z1", Status.DELIVERED, signed_by="Ms. Example"))
    (body,) = await sent(api)
    assert "Ms. Example" in body
    (one,) = await listed(api, subscription_id, scopes="subscriptions read pii")
    hidden = await shown(api, subscription_id, one["webhook_id"], scopes="subscriptions read pii")
    assert (hidden["body"], hidden["body_state"]) == (None, "withheld")
    seen = await shown(
        api, subscription_id, one["webhook_id"], scopes="subscriptions read pii", include="personal"
    )
    assert (seen["body"], seen["attempts"][0]["response"]) == (body, "")
    assert orjson.loads(seen["body"])["type"] == "shipment.status_changed"
    assert len(await rows(api, "SELECT FROM statesvc.action WHERE verb = 'read_personal'")) == 1
    await api.carriers.execute(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock()"
    )
    gone = await shown(
        api, subscription_id, one["webhook_id"], scopes="subscriptions read pii", include="personal"
    )
    assert (gone["body"], gone["body_state"]) == (None, "erased")

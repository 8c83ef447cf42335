"""A history that is imported with `notify=false`: the log and the state have it, and no
subscription is sent it.
"""

import json
from typing import Any

from statesvc.log.json_compression import decompress_json

SUBSCRIPTION = {"url": "https://subscriber.invalid/"}


def event(number: str, status: str, hour: int = 8, **more: str) -> dict[str, str]:
    return {
        "carrier_id": "ups",
        "event_id": f"{number}-{hour}",
        "tracking_number": number,
        "occurred_at": f"2025-05-01T{hour:02}:00:00+00:00",
        "status": status,
        **more,
    }


async def submit(api: Any, *events: dict[str, str], **query: str) -> None:
    reply = await api.call(
        "POST",
        "/v1/events",
        scopes="ingest",
        params=query,
        data="\n".join(map(json.dumps, events)),
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert {each["verdict"] for each in reply.body["results"]} == {"appended"}


async def waiting(api: Any) -> list[tuple[str, str]]:
    return list(
        await api.rows(
            "SELECT n.tracking_number, n.to_status FROM statesvc.outbox JOIN statesvc.notification n"
            " USING (shipment_id, sequence)"
        )
    )


async def test_no_subscription_is_sent_it_and_its_entries_say_so(api: Any) -> None:
    made = await api.call("POST", "/v1/subscriptions", scopes="subscriptions", json=SUBSCRIPTION)
    await submit(api, event("1ZOLD", "in_transit"), event("1ZNEW", "in_transit"), notify="false")
    assert await waiting(api) == []
    await submit(api, event("1ZNEW", "delivered", 9))
    assert await waiting(api) == [("1ZNEW", "delivered")]

    logged = [
        json.loads(decompress_json(canonical))
        for (canonical,) in await api.rows("SELECT canonical FROM statesvc.event")
    ]
    assert sorted((each["event_id"], each.get("notify")) for each in logged) == [
        ("1ZNEW-8", False),
        ("1ZNEW-9", None),
        ("1ZOLD-8", False),
    ]
    history = await api.get("/v1/shipments/ups/1ZOLD/history")
    assert [each["status"] for each in history.body["items"]] == ["in_transit"]

    replayed = await api.call(
        "POST",
        f"/v1/subscriptions/{made.body['id']}/replay",
        scopes="subscriptions",
        json={"since": "2020-01-01T00:00:00Z", "dry_run": True, "delivered_too": True},
    )
    assert replayed.body["matched"] == 1, "a replay leaves it out, too"

import json
from typing import Any

from events.vocabulary import Status
from statesvc.log.json_compression import decompress_json


def statuses(items: list[dict[str, Any]]) -> list[str]:
    return [item["status"] for item in items]


async def test_events_stand_in_timeline_order_whatever_order_they_came_in(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(scan("1", Status.DELIVERED, minutes=120))
    await api.carriers.push(
        scan("1", Status.PICKED_UP, minutes=30),
        scan("1", Status.OUT_FOR_DELIVERY, minutes=120, code="OD"),
    )
    await api.carriers.push(scan("1", Status.INFO_RECEIVED, minutes=45, day_only=True, code="X2"))
    items = (await api.get("/v1/shipments/ups/1/history")).body["items"]
    assert statuses(items) == ["info_received", "picked_up", "out_for_delivery", "delivered"]
    assert [item["version"] for item in items] == [4, 2, 3, 1]


async def test_an_event_has_the_keys_of_the_contract(api: Any, scan: Any) -> None:
    await api.carriers.push(
        scan(
            "2",
            Status.DELIVERED,
            description="Left with A. Person",
            signed_by="A. Person",
            type="D",
            code="9E",
        )
    )
    (shown,) = (await api.get("/v1/shipments/ups/2/history")).body["items"]
    assert (shown["carrier_code"], shown["occurred_at"], shown["occurred_at_raw"]) == (
        "D/9E",
        "2026-03-01T08:00:00+00:00",
        "2026-03-01 08:00",
    )
    assert {"sealed_at": None, "log_index": None, "version": 1}.items() <= shown.items()
    assert not {"description", "signed_by", "delivery_address"} & shown.keys()


async def test_a_late_scan_between_two_pages_repeats_and_loses_nothing(api: Any, scan: Any) -> None:
    await api.carriers.push(
        *(scan("4", Status.IN_TRANSIT, minutes=10 * place) for place in range(1, 6))
    )
    path = "/v1/shipments/ups/4/history"
    first = (await api.get(path, params={"limit": "3"})).body
    await api.carriers.push(
        scan("4", Status.IN_TRANSIT, minutes=5), scan("4", Status.IN_TRANSIT, minutes=45)
    )
    rest = (await api.get(path, params={"limit": "3", "cursor": first["next_cursor"]})).body
    assert [item["version"] for item in first["items"] + rest["items"]] == [1, 2, 3, 4, 7, 5]
    assert rest["next_cursor"] is None


async def test_the_pages_stay_with_their_shipment_when_the_number_is_used_again(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(
        *(scan("6", Status.IN_TRANSIT, minutes=place, discriminator="old") for place in range(3)),
        carrier_id="fedex",
    )
    path = "/v1/shipments/fedex/6/history"
    first = (await api.get(path, params={"limit": "2"})).body
    await api.carriers.push(
        scan("6", Status.PICKED_UP, minutes=900, discriminator="new"), carrier_id="fedex"
    )
    rest = (await api.get(path, params={"limit": "2", "cursor": first["next_cursor"]})).body
    assert {item["discriminator"] for item in first["items"] + rest["items"]} == {"old"}
    assert len(rest["items"]) == 1


async def test_a_cursor_of_another_shipment_is_refused(api: Any, scan: Any) -> None:
    await api.carriers.push(
        *(scan(number, Status.IN_TRANSIT, minutes=place) for number in "78" for place in range(2))
    )
    cursor = (await api.get("/v1/shipments/ups/7/history", params={"limit": "1"})).body[
        "next_cursor"
    ]
    reply = await api.get("/v1/shipments/ups/8/history", params={"limit": "1", "cursor": cursor})
    assert (reply.status, reply.body["code"]) == (400, "invalid_cursor")


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

from typing import Any

from events.vocabulary import Status


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

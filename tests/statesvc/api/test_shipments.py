from typing import Any
from urllib.parse import quote

import pytest
from yarl import URL

from events.vocabulary import Status
from statesvc.api.call_limits import CallLimits


async def erase(api: Any, shipment_id: str) -> None:
    await api.carriers.execute(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock() WHERE"
        " shipment_id = %s",
        [shipment_id],
    )


async def test_answers_with_the_state_that_the_contract_describes(api: Any, scan: Any) -> None:
    await api.carriers.push(
        scan("1Z 999", Status.PICKED_UP, estimated_delivery="2026-03-02"),
        scan("1Z 999", Status.DELIVERED, minutes=60, signed_by="A. Person"),
    )
    reply = await api.get("/v1/shipments/ups/1Z999")
    assert reply.status == 200
    wanted = {
        "carrier_id": "ups",
        "tracking_number": "1Z 999",
        "status": "delivered",
        "terminal": True,
        "version": 2,
        "others": [],
    }
    assert wanted.items() <= reply.body.items()
    assert reply.body["delivered_at"] == "2026-03-01T09:00:00+00:00"
    assert reply.body["estimated_delivery"] == "2026-03-02"


async def test_a_number_of_any_signs_has_a_path(api: Any, scan: Any) -> None:
    for number in ("{{X}}", "A/B", "50%", "A?B#C", "<B>"):
        await api.carriers.push(scan(number, Status.PICKED_UP))
        reply = await api.get(URL(f"/v1/shipments/ups/{quote(number, safe='')}", encoded=True))
        assert (reply.status, reply.body["tracking_number"]) == (200, number)


async def test_an_unknown_number_and_an_unknown_carrier_are_problems_of_their_own(api: Any) -> None:
    number = await api.get("/v1/shipments/ups/1ZUNHEARD")
    assert (number.status, number.body["code"]) == (404, "not_found")
    assert number.headers["Content-Type"].startswith("application/problem+json")
    assert "1ZUNHEARD" not in str(number.body)
    carrier = await api.get("/v1/shipments/nobody/1")
    assert (carrier.status, carrier.body["code"]) == (404, "unknown_carrier")


async def test_the_shipments_of_one_parcel_know_each_other(api: Any, scan: Any) -> None:
    await api.carriers.push(
        scan("1Z 9", Status.IN_TRANSIT, parcel_carrier_id="ups"), carrier_id="aftership"
    )
    assert "same_parcel" not in (await api.get("/v1/shipments/aftership/1Z9")).body
    await api.carriers.push(scan("1Z9", Status.DELIVERED, minutes=5))
    await api.carriers.push(scan("1Z9", Status.DELIVERED, minutes=5), carrier_id="fedex")
    for carrier_id, other in (("ups", "aftership"), ("aftership", "ups")):
        shown = await api.get(f"/v1/shipments/{carrier_id}/1Z9")
        (source,) = shown.body["same_parcel"]
        there = (await api.get(f"/v1/shipments/{other}/1Z9")).body
        assert (source["carrier_id"], source["shipment_id"], source["status"]) == (
            other,
            there["shipment_id"],
            there["status"],
        )
        assert (
            await api.get(
                f"/v1/shipments/{carrier_id}/1Z9", headers={"If-None-Match": shown.headers["ETag"]}
            )
        ).status == 304
    assert "same_parcel" not in (await api.get("/v1/shipments/fedex/1Z9")).body
    (event,) = (await api.get("/v1/shipments/aftership/1Z9/history")).body["items"]
    assert event["parcel_carrier_id"] == "ups"


async def test_a_number_used_twice_answers_with_the_latest_shipment_and_lists_the_other(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(
        scan("8", Status.DELIVERED, minutes=500, discriminator="new"), carrier_id="fedex"
    )
    await api.carriers.push(
        scan("8", Status.DELIVERED, minutes=10, discriminator="old"), carrier_id="fedex"
    )
    latest = (await api.get("/v1/shipments/fedex/8")).body
    assert latest["discriminator"] == "new"
    assert [other["discriminator"] for other in latest["others"]] == ["old"]
    older = (await api.get("/v1/shipments/fedex/8", params={"discriminator": "old"})).body
    assert (older["discriminator"], [other["discriminator"] for other in older["others"]]) == (
        "old",
        ["new"],
    )
    neither = await api.get("/v1/shipments/fedex/8", params={"discriminator": "x"})
    assert (neither.status, neither.body["code"]) == (404, "not_found")


async def test_a_signer_that_came_later_is_found(api: Any, scan: Any) -> None:
    await api.carriers.push(scan("10", Status.DELIVERED))
    await api.carriers.push(scan("10", Status.DELIVERED, signed_by="B. Person"))
    assert (
        await api.get("/v1/shipments/ups/10", scopes="read pii", params={"include": "personal"})
    ).body["signed_by"] == "B. Person"


async def test_an_unchanged_shipment_is_not_sent_again(api: Any, scan: Any) -> None:
    await api.carriers.push(scan("12", Status.IN_TRANSIT))
    first = await api.get("/v1/shipments/ups/12")
    known = {"If-None-Match": first.headers["ETag"]}
    again = await api.get("/v1/shipments/ups/12", headers=known)
    assert (again.status, again.body, again.headers["ETag"]) == (304, None, first.headers["ETag"])

    seen_by_pii = await api.get(
        "/v1/shipments/ups/12", scopes="read pii", headers=known, params={"include": "personal"}
    )
    assert seen_by_pii.status == 200
    await api.carriers.push(scan("12", Status.OUT_FOR_DELIVERY, minutes=5))
    moved = await api.get("/v1/shipments/ups/12", headers=known)
    assert moved.status == 200
    await erase(api, moved.body["shipment_id"])
    erased = await api.get("/v1/shipments/ups/12", headers={"If-None-Match": moved.headers["ETag"]})
    assert (erased.status, erased.body["erased"]) == (200, True)


@pytest.mark.slow
async def test_the_list_is_paged_in_order_of_change_and_misses_none_that_changes_meanwhile(
    api: Any, scan: Any
) -> None:
    for number in range(5):
        await api.carriers.push(scan(f"L{number}", Status.IN_TRANSIT))
    first = (await api.get("/v1/shipments", params={"limit": "2"})).body
    await api.carriers.push(
        scan("L3", Status.DELIVERED, minutes=9), scan("L0", Status.DELIVERED, minutes=9)
    )
    rest = []
    cursor = first["next_cursor"]
    while cursor:
        page = (await api.get("/v1/shipments", params={"limit": "2", "cursor": cursor})).body
        rest += [(item["tracking_number"], item["status"]) for item in page["items"]]
        cursor = page["next_cursor"]
    assert [item["tracking_number"] for item in first["items"]] == ["L0", "L1"]
    assert rest == [
        ("L2", "in_transit"),
        ("L4", "in_transit"),
        ("L3", "delivered"),
        ("L0", "delivered"),
    ]


@pytest.mark.parametrize("call_limits", [CallLimits(listed_shipments=3)])
@pytest.mark.parametrize(("status", "empty"), [(Status.EXCEPTION, [[], []]), (Status.LOST, [])])
async def test_a_rare_status_is_found_beyond_a_page_and_one_at_its_end_among_its_like(
    api: Any, scan: Any, status: Status, empty: list[list[str]]
) -> None:
    for number in range(7):
        await api.carriers.push(scan(f"R{number}", status if number == 6 else Status.IN_TRANSIT))
    pages = await api.pages("/v1/shipments", status=status)
    assert [[item["tracking_number"] for item in page] for page in pages] == [*empty, ["R6"]]


async def test_an_erasure_changes_the_etag_needs_admin_and_takes_a_number_that_was_never_seen(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(scan("9", Status.DELIVERED, signed_by="J. Doe"))
    before = await api.get("/v1/shipments/ups/9")
    call = {"json": {"why": "asked to"}}
    assert (
        await api.call("POST", "/v1/shipments/ups/9/erase", scopes="ops audit pii", **call)
    ).status == 403
    never_seen = await api.call("POST", "/v1/shipments/ups/8/erase", scopes="admin", **call)
    assert (never_seen.status, len(never_seen.body["erased"])) == (200, 1)
    assert (await api.get("/v1/shipments/ups/8")).status == 404
    assert (await api.call("POST", "/v1/shipments/no/9/erase", scopes="admin", **call)).body[
        "code"
    ] == "unknown_carrier"
    done = await api.call("POST", "/v1/shipments/ups/9/erase", scopes="admin", **call)
    assert done.body.pop("complete_at") > before.body["recorded_at"]
    assert done.body == {
        "erased": [before.body["shipment_id"]],
        "already_erased": [],
        "dead_letters_searched": 0,
        "dead_letters_named": 0,
        "dead_letters_left": False,
        "survives_restore": True,
        "tombstones": done.body["tombstones"],
        "next_cursor": None,
    }
    after = await api.get("/v1/shipments/ups/9", scopes="read pii", params={"include": "personal"})
    assert (after.body["erased"], after.body["signed_by"]) == (True, None)
    assert after.headers["ETag"] != before.headers["ETag"]

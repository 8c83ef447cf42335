"""A shipment is found by its number alone, by its id, by how long nothing was heard of it."""

from typing import Any

import pytest

from events.vocabulary import Reason, Status
from statesvc.shipments import shipment_list
from tests.world.database import Database

HOUR = 3600.0
BARCODE = "420627019205590164917312345678"
"""Barcode of a parcel of USPS: the consignee's postcode in front of the number."""


async def found(api: Any, **query: str) -> list[tuple[str, str]]:
    return [
        (item["carrier_id"], item["tracking_number"])
        for page in await api.pages("/v1/shipments", **query)
        for item in page
    ]


async def test_a_number_alone_finds_the_shipments_of_every_carrier_that_uses_it(
    api: Any, scan: Any
) -> None:
    for carrier_id in ("ups", "fedex"):
        await api.carriers.push(
            scan("1Z99", Status.IN_TRANSIT), scan("1Z98", Status.IN_TRANSIT), carrier_id=carrier_id
        )
    for spelling in ("1Z-99", "1z 99", "\u200b1Z99", "\u20661Z99\u2069"):
        assert await found(api, tracking_number=spelling) == [("ups", "1Z99"), ("fedex", "1Z99")], (
            spelling
        )
        assert await found(api, tracking_number=spelling, carrier_id="fedex") == [
            ("fedex", "1Z99")
        ], spelling
        assert await found(api, tracking_number=spelling, status="lost") == [], spelling
        assert await found(api, tracking_number="1Z97") == [], spelling


async def test_several_numbers_are_found_at_once(api: Any, scan: Any) -> None:
    await api.carriers.push(
        scan("1Z99", Status.IN_TRANSIT),
        scan("1Z98", Status.IN_TRANSIT),
        scan("1Z97", Status.IN_TRANSIT),
    )
    await api.carriers.push(
        scan("A,B", Status.IN_TRANSIT), scan("A", Status.IN_TRANSIT), carrier_id="fedex"
    )
    assert await found(api, tracking_number="1z-99,1Z97, 1Z00,") == [
        ("ups", "1Z99"),
        ("ups", "1Z97"),
    ]
    assert await found(api, tracking_number="1Z99,1Z98", carrier_id="fedex") == []
    assert sorted(await found(api, tracking_number="A,B")) == [("fedex", "A"), ("fedex", "A,B")]
    many = ",".join(f"N{number}" for number in range(51))
    refused = await api.get(f"/v1/shipments?tracking_number={many}")
    assert (refused.status, refused.body["code"]) == (422, "invalid_request")
    assert "50 numbers at most" in refused.body["detail"]


async def test_numbers_are_found_by_their_beginning_and_by_their_last_characters(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(
        scan("1Z99A12345", Status.IN_TRANSIT),
        scan("1Z99B12345", Status.DELIVERED),
        scan("1Z98\u00e4", Status.IN_TRANSIT),
    )
    await api.carriers.push(
        scan("99A12345", Status.IN_TRANSIT), scan("12345X", Status.IN_TRANSIT), carrier_id="fedex"
    )
    assert await found(api, tracking_number="1z-99*") == [
        ("ups", "1Z99A12345"),
        ("ups", "1Z99B12345"),
    ]
    assert await found(api, tracking_number="1Z*", status="in_transit") == [
        ("ups", "1Z99A12345"),
        ("ups", "1Z98\u00e4"),
    ]
    assert await found(api, tracking_number="*1-2345") == [
        ("ups", "1Z99A12345"),
        ("ups", "1Z99B12345"),
        ("fedex", "99A12345"),
    ]
    assert await found(api, tracking_number="*9a 12345", carrier_id="fedex") == [
        ("fedex", "99A12345")
    ]
    assert await found(api, tracking_number="12345*") == [("fedex", "12345X")]
    assert await found(api, tracking_number="*z98\u00e4") == [("ups", "1Z98\u00e4")]
    assert (
        await found(api, tracking_number="*54321") == await found(api, tracking_number="Z99*") == []
    )
    await api.carriers.push(
        scan("111222233334444555", Status.IN_TRANSIT), scan("991222233334444555", Status.IN_TRANSIT)
    )
    assert len(await found(api, tracking_number="*222233334444555")) == 2
    assert await found(api, tracking_number="*91222233334444555") == [("ups", "991222233334444555")]
    for short in ("*", "*345", "**", "-*"):
        refused = await api.get("/v1/shipments", params={"tracking_number": short})
        assert (refused.status, refused.body["code"]) == (422, "invalid_request"), short


async def test_a_part_that_too_many_numbers_share_asks_for_more_characters(
    api: Any, scan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipment_list, "MATCHES_MAX", 2)
    await api.carriers.push(*(scan(f"1ZX{n}00055", Status.IN_TRANSIT) for n in range(3)))
    for part in ("*00055", "1ZX*"):
        refused = await api.get("/v1/shipments", params={"tracking_number": part})
        assert (refused.status, refused.body["code"]) == (422, "too_many"), part
        assert "more than 2 shipments match: give more characters" in refused.body["detail"]
    assert await found(api, tracking_number="*100055") == [("ups", "1ZX100055")]


async def test_the_newest_change_comes_first_when_asked_for_and_pages_go_on_from_there(
    api: Any, scan: Any, database: Database
) -> None:
    for place, number in enumerate(("N1", "N2", "N3", "N4")):
        middle = (await database.clock.now()).isoformat()
        await api.carriers.push(scan(number, Status.DELIVERED if place % 2 else Status.IN_TRANSIT))
    pages = await api.pages("/v1/shipments", order="newest", limit="3")
    assert [[item["tracking_number"] for item in page] for page in pages] == [
        ["N4", "N3", "N2"],
        ["N1"],
    ]
    pages = await api.pages(
        "/v1/shipments", order="newest", limit="1", tracking_number="N*", carrier_id="ups"
    )
    assert [item["tracking_number"] for page in pages for item in page] == ["N4", "N3", "N2", "N1"]
    assert await found(api, order="newest", updated_before=middle, status="in_transit") == [
        ("ups", "N3"),
        ("ups", "N1"),
    ]
    assert await found(api, order="newest", updated_after=middle) == await found(
        api, updated_after=middle
    )
    first = (await api.get("/v1/shipments", params={"order": "newest", "limit": "1"})).body
    await api.carriers.push(scan("N1", Status.OUT_FOR_DELIVERY, minutes=5))
    rest = (
        await api.get(
            "/v1/shipments",
            params={"order": "newest", "limit": "9", "cursor": first["next_cursor"]},
        )
    ).body
    assert [item["tracking_number"] for item in rest["items"]] == ["N3", "N2"]
    assert (
        await api.get("/v1/shipments", params={"limit": "9", "cursor": first["next_cursor"]})
    ).body["code"] == "invalid_cursor"


async def test_a_barcode_finds_the_parcel(api: Any, scan: Any) -> None:
    await api.carriers.push(scan(BARCODE[8:], Status.IN_TRANSIT), carrier_id="usps")
    assert await found(api, tracking_number=BARCODE) == [("usps", BARCODE[8:])]


async def test_a_number_that_many_shipments_bear_is_paged(api: Any, scan: Any) -> None:
    for each in range(5):
        await api.carriers.push(
            scan("R", Status.IN_TRANSIT, discriminator=f"d{each}", minutes=each), carrier_id="fedex"
        )
    pages = await api.pages("/v1/shipments", tracking_number="r", limit="2")
    assert [[item["discriminator"] for item in page] for page in pages] == [
        ["d0", "d1"],
        ["d2", "d3"],
        ["d4"],
    ]
    first = await api.get("/v1/shipments?tracking_number=r&limit=4")
    link = first.headers["Link"].removesuffix('>; rel="next"').removeprefix("<")
    second = await api.get(f"/v1/shipments{link}")
    assert [item["discriminator"] for item in second.body["items"]] == ["d4"]


async def test_shipments_are_found_by_the_reason_of_their_status(api: Any, scan: Any) -> None:
    await api.carriers.push(
        scan("A", Status.EXCEPTION, reason=Reason.WEATHER),
        scan("B", Status.EXCEPTION, reason=Reason.CUSTOMS_HOLD),
        scan("C", Status.EXCEPTION),
    )
    assert await found(api, reason="customs_hold") == [("ups", "B")]
    assert (await api.get("/v1/shipments", params={"reason": "bad mood"})).status == 422


async def test_shipments_are_found_by_their_service_and_show_it(api: Any, scan: Any) -> None:
    ground = scan("A", Status.IN_TRANSIT, service="UPS Ground")
    await api.carriers.push(
        ground,
        scan("B", Status.IN_TRANSIT, service="UPS 2nd Day Air"),
        scan("C", Status.IN_TRANSIT),
    )
    assert (
        await found(api, service="ups GROUND")
        == await found(api, service="UPS Ground", tracking_number="A")
        == [("ups", "A")]
    )
    assert await found(api, service="GROUND") == []
    shipment = (await api.get("/v1/shipments/ups/A")).body
    (event,) = (await api.get("/v1/shipments/ups/A/history")).body["items"]
    assert shipment["service"] == event["service"] == "UPS Ground"


async def test_a_shipment_is_found_by_its_id_now_and_in_the_past(api: Any, scan: Any) -> None:
    await api.carriers.push(
        scan("TWICE", Status.DELIVERED, discriminator="old"), carrier_id="fedex"
    )
    await api.carriers.push(
        scan("TWICE", Status.IN_TRANSIT, minutes=9, discriminator="new"), carrier_id="fedex"
    )
    latest = (await api.get("/v1/shipments/fedex/TWICE")).body
    (other,) = latest["others"]
    for shipment_id, discriminator in (
        (latest["shipment_id"], "new"),
        (other["shipment_id"], "old"),
    ):
        reply = await api.get(f"/v1/shipments/{shipment_id}")
        assert (reply.status, reply.body["shipment_id"], reply.body["discriminator"]) == (
            200,
            shipment_id,
            discriminator,
        )
        assert reply.body["tracking_number"] == "TWICE"
        assert (
            await api.get(
                f"/v1/shipments/{shipment_id}", headers={"If-None-Match": reply.headers["ETag"]}
            )
        ).status == 304
        # nothing was sealed yet
        assert (
            await api.get(f"/v1/shipments/{shipment_id}", params={"as_of": "2026-03-01T00:00:00Z"})
        ).status == 404


async def test_an_id_that_means_no_shipment_is_not_found(api: Any, scan: Any) -> None:
    await api.carriers.push(scan("1", Status.IN_TRANSIT))
    await api.call(
        "POST", "/v1/shipments/ups/never/erase", scopes="admin", json={"why": "asked to"}
    )
    (erased,) = await (
        await api.connection.execute("SELECT shipment_id FROM statesvc.stream WHERE version = 0")
    ).fetchone()
    for shipment_id in (erased, "00000000-0000-4000-8000-000000000000"):
        assert (await api.get(f"/v1/shipments/{shipment_id}")).body["code"] == "not_found"
    assert (await api.get("/v1/shipments/1Z99")).body["code"] == "invalid_request"


async def test_stalled_are_those_not_at_their_end_that_were_not_heard_of(
    api: Any, scan: Any, database: Database
) -> None:
    await api.carriers.push(scan("STUCK", Status.IN_TRANSIT), scan("DONE", Status.DELIVERED))
    await database.clock.advance(48 * HOUR)
    noon = (await database.clock.now()).isoformat()
    await api.carriers.push(scan("FRESH", Status.IN_TRANSIT))
    await database.clock.advance(12 * HOUR)
    assert await found(api, stalled_for="PT36H") == [("ups", "STUCK")]
    assert await found(api, stalled_for="PT36H", status="delivered") == []
    assert await found(api, stalled_for="P3D") == []
    assert sorted(await found(api, updated_before=noon)) == [("ups", "DONE"), ("ups", "STUCK")]
    assert await found(api, updated_before=noon, status="delivered") == [("ups", "DONE")]
    assert await found(api, updated_before=noon, updated_after=noon) == []
    for wrong in ("PT0S", "-P1D", "yesterday", "P99999D"):
        assert (await api.get("/v1/shipments", params={"stalled_for": wrong})).status == 422


async def test_what_stalls_while_the_pages_are_read_does_not_come_into_them(
    api: Any, scan: Any, database: Database
) -> None:
    await api.carriers.push(scan("S1", Status.IN_TRANSIT))
    await api.carriers.push(scan("S2", Status.IN_TRANSIT))
    await database.clock.advance(HOUR)
    await api.carriers.push(scan("S3", Status.IN_TRANSIT))
    await database.clock.advance(1.5 * HOUR)
    first = (await api.get("/v1/shipments", params={"stalled_for": "PT2H", "limit": "1"})).body
    await database.clock.advance(6 * HOUR)
    rest = (
        await api.get(
            "/v1/shipments",
            params={"stalled_for": "PT2H", "limit": "9", "cursor": first["next_cursor"]},
        )
    ).body
    assert sorted(item["tracking_number"] for item in [*first["items"], *rest["items"]]) == [
        "S1",
        "S2",
    ]
    assert rest["next_cursor"] is None


async def test_a_path_of_its_own_has_its_own_methods(api: Any) -> None:
    """`/v1/subscriptions/{subscription_id}` fits the first one too, with methods
    that make no sense there.
    """
    for path in ("/v1/subscriptions/portal-links", "/v1/carriers/ups/mappings/preview"):
        for method in ("PUT", "GET"):
            refused = await api.client.request(method, path)
            assert (refused.status, refused.headers["Allow"]) == (405, "POST"), method


async def test_what_no_shipment_could_answer_is_refused_and_not_found_empty(api: Any) -> None:
    for asked, status, text in (
        ("carrier_id=usp", 404, "did you mean `usps`"),
        ("tracking_number=1Z*11", 422, "`*` stands behind the beginning of one number"),
        ("tracking_number=1Z*,2Z*", 422, "`*` stands behind the beginning of one number"),
        ("stalled_for=72", 422, "should be a duration, such as P3D or PT36H"),
        ("updated_after=2026-05-01", 422, "should be a time with its offset"),
        ("updated_before=1700000000", 422, "should be a time with its offset"),
    ):
        reply = await api.get(f"/v1/shipments?{asked}")
        assert (reply.status, text in str(reply.body)) == (status, True), asked
    for name, hint in (("ups", "?carrier_id=ups"), ("1Z 99", "?tracking_number=...")):
        reply = await api.get(f"/v1/shipments/{name}")
        assert (reply.status, f"/v1/shipments{hint}" in str(reply.body)) == (422, True), name


async def test_an_unknown_flag_is_a_warning_and_under_strict_handling_refused(api: Any) -> None:
    lax = await api.get("/v1/shipments?flag=overdu")
    assert lax.body["warnings"] == [{"pointer": "/query/flag", "proposal": "overdue"}]
    strict = await api.get("/v1/shipments?flag=overdu", headers={"Prefer": "handling=strict"})
    assert (strict.status, strict.headers["Preference-Applied"]) == (422, "handling=strict")
    assert "did you mean `overdue`?" in str(strict.body)
    assert "warnings" not in (await api.get("/v1/shipments?flag=overdue")).body

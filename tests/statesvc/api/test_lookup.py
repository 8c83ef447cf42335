"""Many numbers looked up in one call."""

import re
from datetime import timedelta
from typing import Any

import pytest

from events.event import EventPlace
from events.vocabulary import Kind, Status
from statesvc.database.queries import queries

PATH = "/v1/shipments/lookup"


async def look_up(api: Any, *numbers: str | tuple[str, str], status: int = 200) -> Any:
    asked = [
        {"tracking_number": one}
        if isinstance(one, str)
        else {"tracking_number": one[1], "carrier_id": one[0]}
        for one in numbers
    ]
    reply = await api.call("POST", PATH, scopes="read", json={"numbers": asked})
    assert reply.status == status, reply.body
    return reply.body


async def test_numbers_are_answered_in_the_order_asked_with_carrier_or_without(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(scan("1Z 1", Status.IN_TRANSIT), scan("1Z2", Status.DELIVERED))
    await api.carriers.push(scan("1Z1", Status.DELIVERED, minutes=5), carrier_id="fedex")
    found = await look_up(api, "1z-2", ("fedex", "1Z1"), "1Z1", "1ZNEVER", ("ups", "1z 1"))
    assert [(one["tracking_number"], one["carrier_id"]) for one in found["items"]] == [
        ("1z-2", None),
        ("1Z1", "fedex"),
        ("1Z1", None),
        ("1ZNEVER", None),
        ("1z 1", "ups"),
    ]
    assert [
        [(each["carrier_id"], each["status"]) for each in one["shipments"]]
        for one in found["items"]
    ] == [
        [("ups", "delivered")],
        [("fedex", "delivered")],
        [("fedex", "delivered"), ("ups", "in_transit")],
        [],
        [("ups", "in_transit")],
    ]


async def test_a_shipment_reads_as_it_does_by_its_number(api: Any, scan: Any) -> None:
    await api.carriers.push(scan("1Z1", Status.DELIVERED, signed_by="A. Person"))
    ((found,),) = [one["shipments"] for one in (await look_up(api, "1Z1"))["items"]]
    shown = (await api.get("/v1/shipments/ups/1Z1")).body
    assert found == {
        name: value for name, value in shown.items() if name not in {"others", "is_signed"}
    }


@pytest.mark.parametrize("carrier_id", ["ups", None])
async def test_references_before_the_first_scan_are_there_with_version_0(
    api: Any, scan: Any, carrier_id: str | None
) -> None:
    await api.call(
        "PUT", "/v1/shipments/ups/1Z1/references", scopes="ingest", json={"order_id": "Order-7"}
    )
    asked = ("ups", "1Z 1") if carrier_id else "1Z 1"
    ((awaited,),) = [one["shipments"] for one in (await look_up(api, asked))["items"]]
    assert (awaited["carrier_id"], awaited["version"], awaited["status"]) == ("ups", 0, "unknown")
    await api.carriers.push(scan("1Z1", Status.IN_TRANSIT))
    ((scanned,),) = [one["shipments"] for one in (await look_up(api, asked))["items"]]
    assert (scanned["shipment_id"], scanned["version"]) == (awaited["shipment_id"], 1)


async def test_two_hundred_numbers_are_one_statement_and_one_more_is_refused(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(*(scan(f"N{n}", Status.IN_TRANSIT) for n in range(200)))
    found = await look_up(api, *(f"n{n}" for n in range(200)))
    assert [one["shipments"][0]["tracking_number"] for one in found["items"]] == [
        f"N{n}" for n in range(200)
    ]
    assert (await look_up(api, *(f"N{n}" for n in range(201)), status=422))[
        "code"
    ] == "invalid_request"
    assert (await look_up(api, status=422))["code"] == "invalid_request"


async def test_a_carrier_that_is_none_is_refused_by_its_place(api: Any) -> None:
    refused = await look_up(api, "1Z1", ("usp", "1Z1"), status=422)
    assert [one["pointer"] for one in refused["errors"]] == ["/body/numbers/1/carrier_id"]
    assert "did you mean `usps`" in refused["errors"][0]["detail"]


ORDER = {"order_id": "A-1001", "metadata": {"team": "blue"}}


async def listed(api: Any, **query: str) -> dict[str, Any]:
    (page,) = await api.pages("/v1/shipments", **query)
    return {item["tracking_number"]: item for item in page}


async def attach(api: Any, number: str, references: Any) -> None:
    path = f"/v1/shipments/ups/{number}/references"
    assert (await api.call("PUT", path, scopes="ingest", json=references)).status == 200


async def test_details_are_the_place_of_the_last_scan_and_the_order(api: Any, scan: Any) -> None:
    await api.carriers.push(
        scan("1Z1", Status.IN_TRANSIT),
        scan("1Z2", Status.PICKED_UP),
        scan("1Z3", None, kind=Kind.INFO),
    )
    await attach(api, "1Z1", ORDER)
    await attach(api, "1Z2", {"metadata": {"team": "blue"}})
    await attach(api, "1Z4", ORDER)
    shown = await listed(api, details="true")
    place = {
        "city": "Springfield",
        "region": "IL",
        "postal_code": "627",
        "country": "US",
        "facility": None,
    }
    assert {number: (one["last_location"], one["order_id"]) for number, one in shown.items()} == {
        "1Z1": (place, "A-1001"),
        "1Z2": (place, None),
        "1Z3": (None, None),
    }
    unheard = await listed(api, details="true", reference="A-1001")
    assert (unheard["1Z4"]["last_location"], unheard["1Z4"]["order_id"]) == (None, "A-1001")
    assert not (await listed(api))["1Z1"].keys() & {"last_location", "order_id"}, (
        "who does not ask does not pay"
    )


async def test_a_scan_that_came_late_is_not_where_the_parcel_was_last(api: Any, scan: Any) -> None:
    await api.carriers.push(scan("1Z1", Status.DELIVERED, minutes=600))
    await api.carriers.push(
        scan(
            "1Z1",
            Status.PICKED_UP,
            minutes=1,
            place=EventPlace(city="Reno", region="NV", country="US"),
        )
    )
    (one,) = (await listed(api, details="true")).values()
    assert (one["status"], one["last_location"]["city"]) == ("delivered", "Springfield")


async def test_only_the_months_in_which_they_were_recorded_are_read_and_by_their_key(
    api: Any, scan: Any
) -> None:
    await api.connection.execute("SET enable_seqscan = off")
    await api.carriers.push(scan("1Z1", Status.IN_TRANSIT))
    ((shipment_id, since, until),) = await api.rows(
        "SELECT shipment_id, first_recorded_at, recorded_at FROM statesvc.shipment"
    )
    asked = {
        "shipment_ids": [shipment_id],
        "event_ids": ["x"],
        "sinces": [since],
        "untils": [until],
        "since": since,
        "until": until + timedelta(seconds=1),
    }
    rows = await api.rows(
        "EXPLAIN " + queries("statesvc.shipments", "shipment_list")["last_scans"], asked
    )
    plan = "\n".join(row[0] for row in rows)
    assert set(re.findall(r"_(\d{6})\b", plan)) == {f"{since:%Y%m}"}
    assert "Seq Scan" not in plan

"""A list with details: where each shipment was scanned last, and the shipper's order."""

import re
from datetime import timedelta
from typing import Any

from events.event import EventPlace
from events.vocabulary import Kind, Status
from statesvc.database.queries import queries

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

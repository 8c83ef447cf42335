from typing import Any

from statesvc.addons.console.shipment_lines import timeline_lines
from statesvc.addons.console.shipment_summary import (
    contradicting_scans,
    late_statements,
    notified_changes,
    status_sentence_of,
)


def event(version: int, status: str, minutes: int) -> dict[str, Any]:
    at = f"2026-03-01T{8 + minutes // 60:02}:{minutes % 60:02}:00+00:00"
    stated = {
        "time_precision": "second",
        "tz_source": "explicit",
        "occurred_at": at,
        "occurred_at_raw": at,
    }
    place = {
        "facility": None,
        "city": "Oakland",
        "region": None,
        "postal_code": None,
        "country": "US",
    }
    nothing = (
        "reason",
        "corrects",
        "anchor",
        "piece",
        "estimated_delivery",
        "signed_by",
        "description",
    )
    return {
        **dict.fromkeys(nothing),
        **stated,
        "event_id": f"e{version}",
        "version": version,
        "kind": "scan",
        "status": status,
        "carrier_id": "ups",
        "tracking_number": "1Z",
        "discriminator": "",
        "carrier_code": "X",
        "by_category": False,
        "location": place,
        "recorded_at": "2026-03-01T18:00:00+00:00",
    }


def shipment(status: str, *flags: str, terminal: bool = True) -> dict[str, Any]:
    return {
        "status": status,
        "reason": None,
        "terminal": terminal,
        "flags": list(flags),
        "status_since": "2026-03-01T09:00:00+00:00",
    }


def test_the_answer_is_of_the_statement_that_made_the_status() -> None:
    lines = timeline_lines(
        [event(1, "picked_up", 0), event(2, "delivered", 60)], {1: "picked_up", 2: "delivered"}
    )
    answer = status_sentence_of(shipment("delivered"), lines)
    assert (answer.what, answer.when, answer.where) == (
        "Delivered",
        "1 March 2026 at 09:00 UTC",
        "Oakland, US",
    )
    assert answer.later == "9 h"


def test_the_time_where_it_happened_is_computed_where_the_carrier_stated_another_zones() -> None:
    place = {
        "facility": None,
        "city": "Oakland",
        "region": "CA",
        "postal_code": "946",
        "country": "US",
    }
    delivered = {**event(1, "delivered", 60), "location": place}
    answer = status_sentence_of(
        shipment("delivered"), timeline_lines([delivered], {1: "delivered"})
    )
    assert answer.there == "1 Mar 2026, 01:00 in Oakland"
    unknown = timeline_lines([event(1, "delivered", 60)], {1: "delivered"})
    assert status_sentence_of(shipment("delivered"), unknown).there == "", (
        "a place in a country of several zones, and no region"
    )


def test_a_scan_after_the_end_is_named_by_its_statement() -> None:
    lines = timeline_lines(
        [event(1, "delivered", 0), event(2, "in_transit", 480)], {1: "delivered"}
    )
    (warned,) = contradicting_scans(shipment("delivered", "contradicted"), lines)
    assert warned.version == 2
    assert warned.sentence.startswith(
        "8 h after “delivered” the carrier scanned the parcel “In transit” in Oakland, US"
        " (statement 2)."
    )
    assert contradicting_scans(shipment("delivered"), lines) == []


def test_what_came_after_a_later_scan_came_late() -> None:
    lines = timeline_lines(
        [event(1, "picked_up", 0), event(4, "in_transit", 10), event(3, "in_transit", 20)]
    )
    assert late_statements(lines) == {4: 3}


def test_who_was_notified_stands_at_the_statement_that_caused_it() -> None:
    attempt = {"started_at": "2026-03-01T09:00:00+00:00", "status_code": 204, "duration_ms": 43}
    base = {"subscription_id": "a", "receiver": "shop.example.com", "covered_by": None}
    delivered = {**base, "sequence": 3, "outcome": "delivered", "attempts": [attempt]}
    waiting: dict[str, Any] = {**base, "sequence": 3, "outcome": None, "attempts": []}
    told = notified_changes([delivered, waiting], {3: 2})
    assert told == {
        2: [
            "shop.example.com was notified 01 Mar 09:00:00 (204 in 43 ms)",
            "shop.example.com is still to be notified",
        ]
    }

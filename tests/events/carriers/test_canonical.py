import hashlib
import json
from typing import Any

import pytest

from events.carriers.canonical import CARRIER, InvalidEventError, lines, read_line
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import Kind, Status, TimePrecision, TzSource
from tests.events.carriers.carrier_fixtures import FIXTURES, read, scans

EVENT: dict[str, Any] = {
    "carrier_id": "ups",
    "event_id": "scan-1",
    "tracking_number": "1Z 999",
    "occurred_at": "2026-03-01T14:05:00-05:00",
    "status": "out_for_delivery",
}


def line(**changes: Any) -> bytes:
    return json.dumps(EVENT | changes).encode()


def faults(body: bytes) -> list[tuple[str, str]]:
    with pytest.raises(InvalidEventError) as caught:
        read_line(body, lambda _: bytes)
    return [(fault.pointer, fault.why) for fault in caught.value.faults]


def test_a_line_states_an_event_of_any_carrier_under_its_own_id() -> None:
    event = read_line(
        line(
            carrier_code="I/OT",
            location={"city": "Reno", "region": "NV", "country": "US"},
            description="On the van",
            estimated_delivery="2026-03-02",
            service=" UPS  Ground ",
            time_precision="minute",
            tz_source="location",
            occurred_at_raw="20260301 1405",
            unheard_of={"a": [1]},
        ),
        lambda _: bytes,
    )

    assert (event.carrier_id, event.event_id, event.tracking_number, event.kind) == (
        "ups",
        "scan-1",
        "1Z 999",
        Kind.SCAN,
    )
    assert (event.status, event.occurred_at.isoformat(), event.occurred_at_raw) == (
        Status.OUT_FOR_DELIVERY,
        "2026-03-01T14:05:00-05:00",
        "20260301 1405",
    )
    assert (event.tz_source, event.time_precision, event.carrier_code) == (
        TzSource.LOCATION,
        TimePrecision.MINUTE,
        "I/OT",
    )
    assert (event.location.city, event.personal.description) == ("Reno", "On the van")
    assert (event.estimated_delivery, event.service) == ("2026-03-02", "UPS Ground")


@pytest.mark.parametrize("prefix", ["c1-", "d1-", "e1-"])
def test_an_id_that_looks_like_ours_is_set_apart(prefix: str) -> None:
    assert read_line(line(event_id=f"{prefix}x"), lambda _: bytes).event_id == f"n-{prefix}x"


@pytest.mark.parametrize(
    ("changes", "is_fact"),
    [
        *(
            (changes, True)
            for changes in [
                {"status": "delivered"},
                {"reason": "weather"},
                {"kind": "info", "status": None},
                {"occurred_at": "2026-03-01T14:06:00-05:00"},
                {"occurred_at": "2026-03-01T14:05:00Z"},
                {"carrier_code": "OT"},
                {"location": {"city": "Reno"}},
                {"tracking_number": "1Z 998"},
            ]
        ),
        *(
            (changes, False)
            for changes in [
                {"description": "x"},
                {"signed_by": "x"},
                {"estimated_delivery": "2026-03-09"},
                {"service": "x"},
                {"tracking_number": "1z-999"},
            ]
        ),
    ],
)
def test_a_stated_fact_makes_a_difference_under_one_id_enrichment_and_spelling_none(
    changes: dict[str, Any], *, is_fact: bool
) -> None:
    assert (digest(line()) != digest(line(**changes))) is is_fact


def digest(body: bytes) -> bytes:
    return read_line(body, lambda _: lambda facts: hashlib.sha256(facts).digest()).facts_digest


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"status": None}, ""),
        ({"status": "unknown"}, "/status"),
        ({"status": "lost in space"}, "/status"),
        ({"kind": "info"}, ""),
        ({"kind": "unmapped", "status": None}, ""),
        ({"corrects": "scan-0"}, ""),
        ({"occurred_at": "2026-03-01T14:05:00"}, "/occurred_at"),
        ({"occurred_at": "2026-02-30T14:05:00Z"}, "/occurred_at"),
        ({"occurred_at": "0001-01-01T00:00:00Z"}, "/occurred_at"),
        ({"occurred_at": 1772373900}, "/occurred_at"),
        ({"tracking_number": " - "}, "/tracking_number"),
        ({"tracking_number": 1.5}, "/tracking_number"),
        ({"event_id": ""}, "/event_id"),
        ({"event_id": "a\nb"}, "/event_id"),
        ({"event_id": "x" * 201}, "/event_id"),
        ({"carrier_id": "UPS!"}, "/carrier_id"),
        ({"location": "Reno"}, "/location"),
        ({"estimated_delivery": "soon"}, "/estimated_delivery"),
        ({"service": "x" * 81}, "/service"),
        ({"service": "call +49 170 1234567"}, "/service"),
    ],
)
def test_a_bad_field_is_named(changes: dict[str, Any], pointer: str) -> None:
    assert [found for found, _ in faults(line(**changes))] == [pointer]


@pytest.mark.parametrize(
    "field",
    [
        "carrier_id",
        "kind",
        "occurred_at",
        "tz_source",
        "status",
        "reason",
        "location",
        "estimated_delivery",
    ],
)
def test_no_value_stands_in_an_error(field: str) -> None:
    ((pointer, why),) = faults(line(**{field: "Jane\tDoe"}))
    assert (pointer, "Jane" in why) == (f"/{field}", False)


def test_all_missing_fields_are_named_at_once() -> None:
    assert [pointer for pointer, _ in faults(b"{}")] == [
        "/carrier_id",
        "/event_id",
        "/tracking_number",
        "/occurred_at",
    ]


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"{", b'{"a": 1, "a": 2}'])
def test_a_line_that_is_no_object_is_invalid(body: bytes) -> None:
    assert [pointer for pointer, _ in faults(body)] == [""]


def test_a_correction_may_retract_or_read_again() -> None:
    retraction = read_line(line(kind="correction", status=None, corrects="scan-0"), lambda _: bytes)
    reading = read_line(
        line(kind="correction", status="delivered", corrects="d1-260301-abc"), lambda _: bytes
    )

    assert (retraction.corrects, retraction.status) == ("scan-0", None)
    assert (reading.corrects, reading.status) == ("d1-260301-abc", Status.DELIVERED)


def test_blank_lines_are_left_out_and_the_others_keep_their_numbers() -> None:
    assert lines(b'{"a": 1}\n\n  \r\n{"b": 2}\r\n') == [(1, b'{"a": 1}'), (4, b'{"b": 2}\r')]


def test_a_webhook_of_lines_rejects_bad_ones_and_those_of_other_carriers() -> None:
    normalized = read(CARRIER, (FIXTURES / "canonical" / "webhook_lines.ndjson").read_bytes())

    assert scans(normalized) == [
        ("123456", "OFD", "out_for_delivery", "2026-03-01T14:05:00-05:00"),
        ("ab 12", None, "correction", "2026-03-01T15:00:00.500000+00:00"),
    ]
    assert [rejection.pointer for rejection in normalized.rejections] == [
        "line 4/carrier_id",
        "line 5/occurred_at",
        "line 6",
    ]


def test_a_webhook_may_be_one_object_over_several_lines_or_a_list() -> None:
    event = {name: value for name, value in EVENT.items() if name != "carrier_id"}

    for body in (json.dumps(event, indent=2), json.dumps([event])):
        assert [reading.native_id for reading in read(CARRIER, body.encode()).readings] == [
            "scan-1"
        ]


def test_a_webhook_without_any_event_is_invalid_and_an_empty_one_empty() -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, line())
    assert (caught.value.cause, "/carrier_id" in caught.value.detail) == (Cause.INVALID_EVENT, True)
    assert read(CARRIER, b"[]").readings == ()


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        *(
            (printed, printed)
            for printed in [
                "20260301 1405",
                "Sun, 01 Mar 2026 14:05:00 GMT",
                "01.03.2026 02:05 PM EST",
                "2026-03-01T14:05:00.123-05:00",
                "/Date(1772392800000-0500)/",
            ]
        ),
        *(
            (printed, EVENT["occurred_at"])
            for printed in [
                "14:05, handed to Zebedee Quux",
                "14:05 QUUX",
                "in the afternoon",
                "14:05 für Ä",
                "1" * 65,
                "",
            ]
        ),
    ],
)
def test_a_time_is_shown_as_it_was_printed_and_what_is_no_time_is_not(
    printed: str, shown: str
) -> None:
    assert read_line(line(occurred_at_raw=printed), lambda _: bytes).occurred_at_raw == shown

"""Normalizers of single carriers: what UPS, FedEx and X12 partners say in their own ways."""

import json
import sys

import pytest

from events.carriers import CARRIERS
from events.carriers.fedex import CARRIER as FEDEX
from events.carriers.ups import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.event import Normalized
from events.identity.ids import identify
from events.vocabulary import Kind, Status
from tests.events.carriers.carrier_fixtures import FIXTURES, fixture_paths, read


def alert(**changes: object) -> Normalized:
    body = json.loads((FIXTURES / "ups" / "track_alert_out_for_delivery.json").read_bytes())
    return read(CARRIER, json.dumps(body | changes).encode())


def test_a_code_means_something_only_with_its_type() -> None:
    by_type = {
        kind: alert(activityStatus={"type": kind, "code": "DL", "description": ""}).readings[0]
        for kind in ("X", "I", "D")
    }
    assert by_type["X"].status is Status.RETURNING
    assert by_type["I"].status is Status.IN_TRANSIT
    assert by_type["D"].kind is Kind.UNMAPPED


@pytest.mark.parametrize(
    ("status_type", "status"),
    [("M", Status.INFO_RECEIVED), ("MV", Status.CANCELLED), ("I", Status.IN_TRANSIT), ("U", None)],
)
def test_an_unknown_code_is_read_by_its_type_where_that_says_enough(
    status_type: str, status: Status | None
) -> None:
    reading = alert(activityStatus={"type": status_type, "code": "Q9"}).readings[0]
    assert (reading.status, reading.by_category) == (status, True)


@pytest.mark.parametrize("status_type", ["X", "D", "Z", "", None])
def test_an_unknown_code_is_never_guessed_elsewhere(status_type: str | None) -> None:
    reading = alert(
        activityStatus={"type": status_type, "code": "Q9", "description": "Delivered"}
    ).readings[0]
    assert (reading.kind, reading.status) == (Kind.UNMAPPED, None)


def test_a_destination_scan_is_out_for_delivery_only_by_its_exact_text() -> None:
    texts = {
        text: alert(activityStatus={"type": "I", "code": "DS", "description": text})
        .readings[0]
        .status
        for text in ("OUT FOR DELIVERY", "Destination Scan", "Not out for delivery")
    }
    assert texts == {
        "OUT FOR DELIVERY": Status.OUT_FOR_DELIVERY,
        "Destination Scan": Status.IN_TRANSIT,
        "Not out for delivery": Status.IN_TRANSIT,
    }


def test_a_signer_is_taken_from_a_delivered_scan_only() -> None:
    assert alert(receivedBy="MUSTER").readings[0].signed_by is None


def test_an_alert_without_gmt_has_the_same_id_as_with_it() -> None:
    pair, local = alert(), alert(gmtActivityDate=None, gmtActivityTime=None, gmtOffset=None)
    ids = [
        identify(found.readings[0], carrier_id="ups", digest=bytes).event_id
        for found in (pair, local)
    ]
    assert ids[0] == ids[1]
    assert local.readings[0].time.tz_source == "location"


def scanned(**changes: object) -> Normalized:
    """Build a result of one scan."""
    scan = {"date": "2026-03-11T11:28:00-07:00", "eventType": "AR", "exceptionCode": ""} | changes
    return read(
        FEDEX,
        json.dumps(
            {"trackingNumberInfo": {"trackingNumber": "999900008888"}, "scanEvents": [scan]}
        ).encode(),
    )


@pytest.mark.parametrize(
    ("event_type", "exception", "status"),
    [
        ("DE", "08", Status.DELIVERY_ATTEMPTED),
        ("DE", "A12", Status.EXCEPTION),
        ("DE", "Q77", Status.EXCEPTION),
        ("SE", "099", Status.EXCEPTION),
        ("DL", "Q77", Status.DELIVERED),
        ("HP", "015A", Status.AVAILABLE_FOR_PICKUP),
        ("Ow", "", Status.IN_TRANSIT),
    ],
)
def test_the_exception_code_decides_where_it_is_known(
    event_type: str, exception: str, status: Status
) -> None:
    assert scanned(eventType=event_type, exceptionCode=exception).readings[0].status is status


def test_an_unknown_event_type_is_never_guessed_from_the_rollup() -> None:
    reading = scanned(eventType="ZZ", derivedStatusCode="DL", derivedStatus="Delivered").readings[0]
    assert (reading.kind, reading.status) == (Kind.UNMAPPED, None)


def test_a_midnight_without_offset_is_a_date_only() -> None:
    date, midnight = scanned(date="2026-03-10T00:00:00"), scanned(date="2026-03-10T00:00:00-06:00")
    assert date.readings[0].time.precision == "day"
    assert midnight.readings[0].time.precision == "second"


def test_without_the_extra_the_message_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyx12.x12file", None)
    with pytest.raises(UnreadableMessageError, match=r"statesvc\[edi\]") as caught:
        read(CARRIERS["x12_214"], fixture_paths("x12_214")[0].read_bytes())
    assert caught.value.cause is Cause.UNREADABLE


def test_an_interchange_that_ends_within_a_status_keeps_what_it_printed() -> None:
    body = next(path for path in fixture_paths("x12_214") if path.stem == "tildes").read_bytes()
    assert len(read(CARRIERS["x12_214"], body.split(b"SE*")[0]).readings) == 1

import json

import pytest

from events.carriers.ups import CARRIER
from events.event import Normalized
from events.identity.ids import identify
from events.vocabulary import Kind, Status
from tests.events.carriers.carrier_fixtures import FIXTURES, read


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

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from events.carriers import ups
from events.carriers.carrier import OAuthToken, SharedHeader
from events.errors import Cause, UnreadableMessageError
from events.event import Normalized
from events.identity import identify
from events.vocabulary import Kind, Status

RECEIVED_AT: Final = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
FIXTURES: Final = Path(__file__).parent / "fixtures" / "ups"
PAYLOADS: Final = sorted(path for path in FIXTURES.iterdir() if not path.name.endswith(".expected.json"))
JUNK: Final[tuple[Any, ...]] = (None, "", "x", [], {}, 7, 1.5, True, [None], [[]], {"a": [1]}, "9" * 400)


def read(body: bytes) -> Normalized:
    return ups.normalize(body, RECEIVED_AT)


def alert(**changes: object) -> Normalized:
    body = json.loads((FIXTURES / "track_alert_out_for_delivery.json").read_bytes())
    return read(json.dumps(body | changes).encode())


def described(normalized: Normalized) -> dict[str, Any]:
    """In the words of the fixtures' `.expected.json`: optional fields only where they say something."""
    events = []
    for reading in normalized.readings:
        event = identify(reading, carrier_id="ups", digest=bytes)
        optional: dict[str, object] = {
            "discriminator": event.discriminator,
            "reason": event.reason,
            "by_category": event.by_category,
            "time_flag": event.time_flag,
            "estimated_delivery": event.estimated_delivery,
            "description": event.personal.description,
            "signed_by": event.personal.signed_by,
            "city": event.location.city,
            "facility": event.location.facility,
        }
        events.append(
            {
                "event_id": event.event_id,
                "tracking_number": event.tracking_number,
                "carrier_code": event.carrier_code,
                "kind": event.kind,
                "status": event.status,
                "occurred_at": event.occurred_at.isoformat(),
                "occurred_at_raw": event.occurred_at_raw,
                "tz_source": event.tz_source,
                "time_precision": event.time_precision,
            }
            | {name: value for name, value in optional.items() if value}
        )
    return {"events": events, "rejections": [f"{rejection.pointer}: {rejection.why}" for rejection in normalized.rejections]}


def nodes(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in children for found in nodes(child, (*path, key)))]


def replaced(value: Any, path: tuple[str | int, ...], junk: object) -> Any:
    if not path:
        return junk
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], junk)
    return copy


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: path.name)
def test_a_payload_is_read_as_its_fixture_says(path: Path) -> None:
    assert described(read(path.read_bytes())) == json.loads(path.with_suffix(".expected.json").read_bytes())


@pytest.mark.parametrize("path", [path for path in PAYLOADS if path.suffix == ".json"], ids=lambda path: path.name)
def test_junk_in_any_place_of_a_payload_is_no_defect_of_ours(path: Path) -> None:
    value = json.loads(path.read_bytes())
    for place in nodes(value):
        for junk in JUNK:
            with contextlib.suppress(UnreadableMessageError):
                normalized = read(json.dumps(replaced(value, place, junk)).encode())
                for reading in normalized.readings:
                    identify(reading, carrier_id="ups", digest=bytes, allow_unnumbered=True)


def test_a_code_means_something_only_with_its_type() -> None:
    by_type = {kind: alert(activityStatus={"type": kind, "code": "DL", "description": ""}).readings[0] for kind in ("X", "I", "D")}
    assert by_type["X"].status is Status.RETURNING
    assert by_type["I"].status is Status.IN_TRANSIT
    assert by_type["D"].kind is Kind.UNMAPPED


@pytest.mark.parametrize(
    ("status_type", "status"), [("M", Status.INFO_RECEIVED), ("MV", Status.CANCELLED), ("I", Status.IN_TRANSIT), ("U", None)]
)
def test_an_unknown_code_is_read_by_its_type_where_that_says_enough(status_type: str, status: Status | None) -> None:
    reading = alert(activityStatus={"type": status_type, "code": "Q9"}).readings[0]
    assert (reading.status, reading.by_category) == (status, True)


@pytest.mark.parametrize("status_type", ["X", "D", "Z", "", None])
def test_an_unknown_code_is_never_guessed_elsewhere(status_type: str | None) -> None:
    reading = alert(activityStatus={"type": status_type, "code": "Q9", "description": "Delivered"}).readings[0]
    assert (reading.kind, reading.status) == (Kind.UNMAPPED, None)


def test_a_destination_scan_is_out_for_delivery_only_by_its_exact_text() -> None:
    texts = {
        text: alert(activityStatus={"type": "I", "code": "DS", "description": text}).readings[0].status
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
    ids = [identify(found.readings[0], carrier_id="ups", digest=bytes).event_id for found in (pair, local)]
    assert ids[0] == ids[1]
    assert local.readings[0].time.tz_source == "location"


@pytest.mark.parametrize("body", [b"{}", b"[]"])
def test_an_empty_answer_holds_nothing(body: bytes) -> None:
    assert read(body) == Normalized()


@pytest.mark.parametrize("body", [b"42", b"null", b'"text"', b'{"trackings": []}', b"<html/>", b"<wrapper><TrackResponse/></wrapper>"])
def test_another_format_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as refusal:
        read(body)
    assert refusal.value.cause is Cause.UNKNOWN_FORMAT


def test_ups_takes_only_200_for_a_yes_and_sends_a_static_header_or_a_token() -> None:
    assert ups.CARRIER.ack.status == 200
    assert ups.CARRIER.authentication == (SharedHeader(header="credential"), OAuthToken())

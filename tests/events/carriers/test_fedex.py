import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from events.carriers import fedex
from events.carriers.carrier import Hmac
from events.errors import Cause, UnreadableMessageError
from events.event import Normalized
from events.identity import identify
from events.vocabulary import Kind, Status

RECEIVED_AT: Final = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
FIXTURES: Final = Path(__file__).parent / "fixtures" / "fedex"
PAYLOADS: Final = sorted(path for path in FIXTURES.iterdir() if not path.name.endswith(".expected.json"))
JUNK: Final[tuple[Any, ...]] = (None, "", "x", [], {}, 7, 1.5, True, [None], [[]], {"a": [1]}, "9" * 400)


def read(body: bytes) -> Normalized:
    return fedex.normalize(body, RECEIVED_AT)


def scanned(**changes: object) -> Normalized:
    """A result of one scan."""
    scan = {"date": "2026-03-11T11:28:00-07:00", "eventType": "AR", "exceptionCode": ""} | changes
    return read(json.dumps({"trackingNumberInfo": {"trackingNumber": "999900008888"}, "scanEvents": [scan]}).encode())


def described(normalized: Normalized) -> dict[str, Any]:
    """In the words of the fixtures' `.expected.json`: optional fields only where they say something."""
    events = []
    for reading in normalized.readings:
        event = identify(reading, carrier_id="fedex", digest=bytes)
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
                    identify(reading, carrier_id="fedex", digest=bytes, allow_unnumbered=True)


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
def test_the_exception_code_decides_where_it_is_known(event_type: str, exception: str, status: Status) -> None:
    assert scanned(eventType=event_type, exceptionCode=exception).readings[0].status is status


def test_an_unknown_event_type_is_never_guessed_from_the_rollup() -> None:
    reading = scanned(eventType="ZZ", derivedStatusCode="DL", derivedStatus="Delivered").readings[0]
    assert (reading.kind, reading.status) == (Kind.UNMAPPED, None)


def test_a_midnight_without_offset_is_a_date_only() -> None:
    date, midnight = scanned(date="2026-03-10T00:00:00"), scanned(date="2026-03-10T00:00:00-06:00")
    assert date.readings[0].time.precision == "day"
    assert midnight.readings[0].time.precision == "second"


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"errors": [{"code": "TRACKING.TRACKINGNUMBER.EMPTY"}]}', b'{"output": {}}'])
def test_an_empty_answer_holds_nothing(body: bytes) -> None:
    assert read(body) == Normalized()


@pytest.mark.parametrize("body", [b"42", b"null", b'"text"', b'{"trackings": []}', b"<html/>", b"<TrackResponse/>"])
def test_another_format_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as refusal:
        read(body)
    assert refusal.value.cause is Cause.UNKNOWN_FORMAT


def test_fedex_signs_the_body_in_base64() -> None:
    assert fedex.CARRIER.authentication == (Hmac(header="fdx-signature", encoding="base64"),)

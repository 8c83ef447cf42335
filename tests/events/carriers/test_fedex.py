import json

import pytest

from events.carriers.fedex import CARRIER
from events.event import Normalized
from events.vocabulary import Kind, Status
from tests.events.carriers.carrier_fixtures import read


def scanned(**changes: object) -> Normalized:
    """Build a result of one scan."""
    scan = {"date": "2026-03-11T11:28:00-07:00", "eventType": "AR", "exceptionCode": ""} | changes
    return read(
        CARRIER,
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

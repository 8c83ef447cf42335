from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from events.event import NOWHERE, EventPlace, Raw, Reading
from events.parsing.times import received
from events.vocabulary import Kind, Status, TimePrecision, TzSource
from tests.corpus_table import differences

READING = Reading(
    tracking_number="1Z-1",
    kind=Kind.SCAN,
    status=Status.DELIVERED,
    raw=Raw(type="D", code="9E"),
    time=received(datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01 10:00"),
)
EXPECTED: dict[str, Any] = {
    "tracking_number": "1Z1",
    "raw_code": "D/9E",
    "status": "delivered",
    "occurred_at_raw": "20260101 1000 local",
}


def test_what_is_asserted_and_said_is_right_and_what_is_not_asserted_is_not_compared() -> None:
    assert list(differences(READING, EXPECTED)) == []
    assert list(differences(READING, dict.fromkeys(EXPECTED) | {"tracking_number": "1Z1"})) == []


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("tracking_number", {"tracking_number": "2"}),
        ("raw_code", {"raw": Raw(type="D", code="FS")}),
        ("status", {"status": Status.RETURNED}),
        ("status", {"kind": Kind.UNMAPPED, "status": None}),
        ("time", {"time": received(READING.time.instant, "2026-01-01 10:01")}),
    ],
)
def test_each_thing_that_is_asserted_and_said_otherwise_is_named(
    field: str, changes: dict[str, Any]
) -> None:
    (told,) = differences(replace(READING, **changes), EXPECTED)
    assert told.startswith(field)


PLACED: Final = replace(
    READING,
    place=EventPlace(city="EL PASO", region="TX", postal_code="79901", country="US"),
    time=replace(READING.time, tz_source=TzSource.LOCATION),
)
ZONED: Final = EXPECTED | {
    "tz": "local-only",
    "location": "El Paso, TX",
    "time_precision": "second",
}


def test_place_zone_and_precision_are_compared_where_they_are_asserted() -> None:
    assert list(differences(PLACED, ZONED)) == []
    for name, changed in (
        ("zone", replace(PLACED, time=replace(PLACED.time, tz_source=TzSource.ASSUMED_UTC))),
        ("place", replace(PLACED, place=EventPlace(city="AUSTIN", region="TX"))),
        ("place", replace(PLACED, place=NOWHERE)),
        ("precision", replace(PLACED, time=replace(PLACED.time, precision=TimePrecision.DAY))),
    ):
        (found,) = differences(changed, ZONED)
        assert found.startswith(name)

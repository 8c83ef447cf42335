"""Zones beside a time: one rule for all readers, over the fixtures of each that
print a local time in JSON.

Of those 51 readers 38 ignored an offset in a field of its own, and 38 an instant in UTC.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, timedelta
from typing import Any, Final

import pytest

from events.carriers import CARRIERS
from events.event import Normalized, Reading
from events.vocabulary import TimePrecision, TzSource
from tests.events.carriers.carrier_fixtures import fixture_paths, read
from tests.events.carriers.test_never_silent import outcome

UNTRUE: Final = {"cainiao"}
"""Readers of formats that print a wrong zone, which they know."""
LOCAL: Final = (TzSource.CARRIER_DEFAULT, TzSource.ASSUMED_UTC, TzSource.LOCATION)
READERS: Final = sorted(CARRIERS.keys() - UNTRUE - {"canonical"})


def with_offset(_name: str, _reading: Reading) -> dict[str, str]:
    return {"zoneOffset": "+11:30"}


def with_instant(name: str, reading: Reading) -> dict[str, str]:
    other = (reading.time.instant + timedelta(hours=2)).astimezone(UTC)
    return {f"utc_{name}": f"{other:%Y-%m-%dT%H:%M:%SZ}"}


def ignored(carrier_id: str, more: Callable[[str, Reading], dict[str, str]]) -> list[str]:
    """Return the scans that are read as before with more fields beside their time."""
    found = []
    for file, body, reading in local_scans(carrier_id):
        value = json.loads(body)
        holders = [*objects_with(value, reading.time.printed)]
        if len(holders) != 1:
            continue
        [(holder, name)] = holders
        holder.update(more(name, reading))
        if outcome(carrier_id, json.dumps(value).encode()) == outcome(carrier_id, body):
            found.append(f"{file}: {reading.time.printed}")
    return found


def local_scans(carrier_id: str) -> Iterator[tuple[str, bytes, Reading]]:
    for path in fixture_paths(carrier_id):
        body = path.read_bytes()
        if body.lstrip().startswith((b"{", b"[")):
            for reading in (outcome(carrier_id, body) or Normalized()).readings:
                time = reading.time
                if time.tz_source in LOCAL and time.precision is not TimePrecision.DAY:
                    yield path.name, body, reading


def objects_with(value: Any, printed: str) -> Iterator[tuple[dict[str, Any], str]]:
    waiting = [value]
    for each in waiting:
        if isinstance(each, dict):
            yield from ((each, name) for name, text in each.items() if text == printed)
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


@pytest.mark.parametrize("carrier_id", READERS)
def test_a_zone_beside_a_local_time_is_read_or_rejected(carrier_id: str) -> None:
    assert ignored(carrier_id, with_offset) == []
    assert ignored(carrier_id, with_instant) == []


def test_a_utc_time_beats_the_wall_clock_and_its_difference_is_the_zone() -> None:
    scans = [{"Scan": "SHIPMENT DELIVERED", "ScanDate": "01-03-2026", "ScanTime": "1000"}]
    body = {"Shipment": {"WaybillNo": "1", "Scans": {"ScanDetail": scans}}}

    def time(**more: str) -> tuple[str, str, str]:
        scans[0].update(more)
        [reading] = read(CARRIERS["bluedart"], json.dumps(body).encode()).readings
        return str(reading.time.instant), reading.time.tz_source, reading.time.identity

    assert time() == ("2026-03-01 10:00:00+05:30", "carrier_default", "20260301T1000")
    assert time(StatusTimeZone="UTC") == (
        "2026-03-01 10:00:00+00:00",
        "explicit",
        "20260301T1000",
    )
    del scans[0]["StatusTimeZone"]
    assert time(UtcScanDate="2026-03-01T06:00:00Z") == (
        "2026-03-01 10:00:00+04:00",
        "pair",
        "20260301T1000",
    )


def test_an_object_may_print_thousands_of_zones() -> None:
    # comparing each with each pair of its fields would take days
    scan = {"Scan": "SHIPMENT DELIVERED", "ScanDate": "01-03-2026", "ScanTime": "1000"}
    zones = {f"zone{index}": "+05:30" for index in range(10_000)}
    body = {
        "Shipment": {"WaybillNo": "1", "Scans": {"ScanDetail": [scan]}, "Further": zones},
        "Other": {**zones, "ScanDate": "01-03-2026", "ScanTime": "1000", "utcTime": "10:00Z"},
    }
    [reading] = read(CARRIERS["bluedart"], json.dumps(body).encode()).readings
    assert str(reading.time.instant) == "2026-03-01 10:00:00+05:30"

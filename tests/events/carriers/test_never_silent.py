"""A message of which a container has another name or shape is read, rejected or refused: it
never comes to nothing.

Of 67 readers 60 came to nothing where a container of one of their fixtures was renamed, wrapped,
doubled or emptied to the other kind. Of 77 readers 68 took `{}`, 67 `[]` and 18 `[{}]` for an
answer without scans, and 8 dropped an element without its scans beside others.
"""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, timedelta
from typing import Any, Final

import pytest

from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.event import Normalized, Reading
from events.vocabulary import TimePrecision, TzSource
from tests.events.carriers.carrier_fixtures import fixture_paths, read
from tests.events.carriers.container_changes import bodies_with_a_bare_element, changed_bodies

EMPTY_LISTS: Final = {
    "17track/answer_accepted_and_rejected.json": "latest_status",
    "dhl_unified/push_one_without_scans.json": "status events",
    "easypost/tracker_without_scans.json": "tracking_details",
    "fedex/track_result_without_scans.json": "latestStatusDetail scanEvents",
}
"""Fixtures that print their list of scans, and it is empty: that is the message's own word that
there is nothing, and only the state of
the shipment is read. The containers that may be changed then.
"""
EMPTIED: Final = ("emptied", "left out")


def silent_changes(carrier_id: str) -> list[str]:
    """Return the changes of a carrier's fixtures after which nothing is read, nothing
    rejected and nothing refused.
    """
    found = []
    for path in fixture_paths(carrier_id):
        body, name = path.read_bytes(), f"{carrier_id}/{path.name}"
        if not (outcome(carrier_id, body) or Normalized()).readings:
            continue
        for change, changed in changed_bodies(body):
            may_be_empty = (
                change.startswith(EMPTIED)
                or re.split("[ /]", change)[-1] in EMPTY_LISTS.get(name, "").split()
            )
            if outcome(carrier_id, changed) == Normalized() and not may_be_empty:
                found.append(f"{name}: {change}")
    return found


def outcome(carrier_id: str, body: bytes) -> Normalized | None:
    """Read a body; None: refused."""
    try:
        return read(CARRIERS[carrier_id], body)
    except UnreadableMessageError:
        return None


@pytest.mark.parametrize("carrier_id", sorted(CARRIERS.keys() - {"canonical"}))
def test_a_renamed_wrapped_or_doubled_container_is_read_or_rejected(carrier_id: str) -> None:
    assert silent_changes(carrier_id) == []


NOTHING: Final = (b"{}", b"[]", b"[{}]", b'{"errors": []}', b'{"trackingNumber": "1"}')
BARE_BY_NATURE: Final = {
    "17track": {"data/rejected"},
    "dhl_express": {
        "trackShipmentRequestResponse/trackingResponse/TrackingResponse/AWBInfo/ArrayOfAWBInfoItem"
    },
    "dpd": {"parcellifecycleResponse/parcelLifeCycleData/statusInfo"},
    "postnl": {"CompleteStatus/Shipment/Address", "CurrentStatus/Shipment/Address"},
    "ups": {
        "QuantumViewResponse/QuantumViewEvents/SubscriptionEvents",
        "QuantumViewResponse/QuantumViewEvents/SubscriptionEvents/0/SubscriptionFile",
    },
}
"""Lists whose members hold no scans, or need not: rejected and unknown numbers, addresses,
undated steps beside scans,
subscriptions without files.
"""


@pytest.mark.parametrize("body", NOTHING)
def test_a_body_without_an_event_and_without_a_word_for_none_is_rejected(body: bytes) -> None:
    ours = CARRIERS.keys() - {"canonical"}
    assert [each for each in ours if outcome(each, body) == Normalized()] == []


@pytest.mark.parametrize("carrier_id", sorted(CARRIERS.keys() - {"canonical"}))
def test_an_element_without_its_scans_beside_others_is_rejected(carrier_id: str) -> None:
    dropped = []
    for path in fixture_paths(carrier_id):
        body = path.read_bytes()
        before = outcome(carrier_id, body) or Normalized()
        for where, changed in bodies_with_a_bare_element(body) if before.readings else ():
            now = outcome(carrier_id, changed)
            if (
                now is not None
                and len(now.readings) <= len(before.readings)
                and len(now.rejections) <= len(before.rejections)
                and where not in BARE_BY_NATURE.get(carrier_id, ())
            ):
                dropped.append(f"{path.name}: {where}")
    assert dropped == []


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
        found = set()
        for encoding in ("utf-8", "utf-8-sig", "utf-16"):
            [reading] = read(CARRIERS["bluedart"], json.dumps(body).encode(encoding)).readings
            at = reading.time
            found.add((str(at.instant), at.tz_source, at.identity))
        [same] = found
        return same

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

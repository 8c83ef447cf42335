"""The zone of an account: times of which nothing but a default says the zone are in it, others
stay, and no id changes.
"""

import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from events.errors import UnreadableMessageError
from events.event import Reading
from events.identity.ids import identify
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import RECEIVED_AT, fixture_paths

ZONE = "Asia/Ho_Chi_Minh"
ASSUMED = (TzSource.ASSUMED_UTC, TzSource.CARRIER_DEFAULT)
SHIPPO = (
    b'{"tracking_number": "9", "tracking_history": [{"status": "TRANSIT", "status_date":'
    b' "2026-03-01T10:00:00Z"}]}'
)


def readings(carrier: Carrier, body: bytes) -> tuple[Reading, ...]:
    try:
        return carrier.read(body, RECEIVED_AT).readings
    except UnreadableMessageError:
        return ()


def ids(carrier: Carrier, found: tuple[Reading, ...]) -> list[str]:
    return [
        identify(each, carrier_id=carrier.carrier_id, digest=bytes, allow_unnumbered=True).event_id
        for each in found
    ]


def test_a_local_time_without_a_place_is_in_the_zone_of_the_account() -> None:
    carrier = CARRIERS["shippo"]
    assert readings(carrier, SHIPPO)[0].time.tz_source is TzSource.ASSUMED_UTC
    (reading,) = readings(carrier.in_zones(ZONE), SHIPPO)
    assert reading.time.instant.isoformat() == "2026-03-01T10:00:00+07:00"
    assert reading.time.tz_source is TzSource.CARRIER_DEFAULT
    assert carrier.in_zones(ZONE).recorded_version("1") == f"1+z{ZONE}"


@pytest.mark.parametrize(
    ("number", "city", "zone"),
    [
        ("JT1", "القاهرة", "Africa/Cairo"),
        ("JT1", "Cairo", "Africa/Cairo"),
        ("JT1", "الحي الشمالي", "Asia/Riyadh"),
        ("JEG1", "الحي الشمالي", "Africa/Cairo"),
        ("JMX1", "الحي الشمالي", "Asia/Riyadh"),
    ],
)
def test_the_city_or_the_number_chooses_among_the_zones_of_an_account(
    number: str, city: str, zone: str
) -> None:
    scan = {"scanTime": "2026-07-01 10:00:00", "scanTypeCode": "10", "scanNetworkCity": city}
    body = json.dumps([{"billCode": number, "details": [scan]}]).encode()
    (reading,) = readings(CARRIERS["jtexpress"].in_zones("Asia/Riyadh", "Africa/Cairo"), body)
    assert reading.time.instant == datetime(2026, 7, 1, 10, tzinfo=ZoneInfo(zone))


@pytest.mark.parametrize("carrier_id", sorted(CARRIERS))
def test_no_id_and_no_time_that_is_stated_changes_with_the_zone(carrier_id: str) -> None:
    carrier = CARRIERS[carrier_id]
    for path in fixture_paths(carrier_id):
        before, after = (
            readings(each, path.read_bytes())
            for each in (carrier, carrier.in_zones("America/New_York"))
        )
        assert ids(carrier, before) == ids(carrier, after), path.name
        assert [each.time for each in before if each.time.tz_source not in ASSUMED] == [
            other.time
            for each, other in zip(before, after, strict=True)
            if each.time.tz_source not in ASSUMED
        ]

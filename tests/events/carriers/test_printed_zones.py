"""Zones and clocks of carriers that print their times in their own way."""

from datetime import UTC, datetime
from typing import Final

import pytest

from events.carriers import CARRIERS
from events.event import Reading
from events.vocabulary import TimePrecision, TzSource

RECEIVED_AT: Final = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def read(carrier_id: str, body: str) -> Reading:
    carrier = CARRIERS[carrier_id]
    return carrier.normalizers[carrier.stable](body.encode(), RECEIVED_AT).readings[0]


def canada_post(date: str, zone: str, site: str, province: str) -> Reading:
    return read(
        "canadapost",
        "<tracking-detail><pin>1</pin><significant-events><occurrence>"
        f"<event-identifier>0170</event-identifier><event-date>{date}</event-date>"
        f"<event-time>10:00:00</event-time><event-time-zone>{zone}</event-time-zone>"
        "<event-description>Item"
        " processed</event-description>"
        f"<event-site>{site}</event-site><event-province>{province}</event-province></occurrence>"
        "</significant-events></tracking-detail>",
    )


@pytest.mark.parametrize(
    ("date", "zone", "site", "province", "offset"),
    [
        ("2026-02-10", "EST", "TORONTO", "ON", "-05:00"),
        ("2026-09-10", "EST", "TORONTO", "ON", "-04:00"),
        ("2026-09-10", "HNE", "MONTREAL", "QC", "-04:00"),
        ("2026-09-10", "EDT", "TORONTO", "ON", "-04:00"),
        ("2026-09-10", "PST", "VANCOUVER", "BC", "-07:00"),
        ("2026-09-10", "CSTNO", "REGINA", "SK", "-06:00"),
        ("2026-02-10", "EST", "WINNIPEG", "MB", "-05:00"),
    ],
)
def test_canada_post_prints_names_of_standard_time_all_year(
    date: str, zone: str, site: str, province: str, offset: str
) -> None:
    reading = canada_post(date, zone, site, province)
    assert (reading.time.instant.isoformat(), reading.time.tz_source) == (
        f"{date}T10:00:00{offset}",
        TzSource.EXPLICIT,
    )
    assert reading.time.zone == zone


@pytest.mark.parametrize("place", ["CHICAGO, UNITED STATES", "BRISBANE QLD"])
def test_australia_post_prints_the_time_of_sydney_wherever_the_scan_was(place: str) -> None:
    event = (
        f'{{"location": "{place}", "description": "In transit to next facility", "date":'
        ' "2026-02-02T09:10:00"}'
    )
    reading = read(
        "australiapost",
        '{"tracking_results": [{"tracking_id": "1", "trackable_items": [{"article_id": "1",'
        f' "events": [{event}]}}]}}]}}',
    )
    assert (reading.time.instant.isoformat(), reading.time.tz_source) == (
        "2026-02-02T09:10:00+11:00",
        TzSource.CARRIER_DEFAULT,
    )


@pytest.mark.parametrize(
    ("status", "code", "offset", "flag"),
    [
        ("M", "MP", "-08:00", "of_shipment"),
        ("D", "KB", "-05:00", "of_shipment"),
        ("I", "DP", "-08:00", "of_shipment"),
    ],
)
def test_ups_prints_a_label_with_a_country_alone_in_the_time_of_its_shipper(
    status: str, code: str, offset: str, flag: str
) -> None:
    ends = ",".join(
        f'{{"type": "{kind}", "address": {{"city": "{city}", "stateProvince": "{state}", "country":'
        ' "US"}}'
        for kind, city, state in (("ORIGIN", "SALEM", "OR"), ("DESTINATION", "BOSTON", "MA"))
    )
    activity = (
        f'{{"location": {{"address": {{"countryCode": "US"}}}}, "status": {{"type": "{status}",'
        f' "description": "x", "code": "{code}"}}, "date": "20240131", "time": "173405"}}'
    )
    package = f'{{"trackingNumber": "1Z1", "packageAddress": [{ends}], "activity": [{activity}]}}'
    reading = read("ups", f'{{"trackResponse": {{"shipment": [{{"package": [{package}]}}]}}}}')
    assert (reading.time.instant.isoformat(), reading.time.flag) == (
        f"2024-01-31T17:34:05{offset}",
        flag,
    )


def test_usps_prints_a_notice_of_the_shipper_without_a_place_in_the_time_of_its_origin() -> None:
    event = (
        '{"eventType": "Pre-Shipment, USPS Awaiting Item", "eventTimestamp": "2026-02-23T00:00:00"}'
    )
    ends = (
        '"originCity": "NEW BERLIN", "originState": "WI", "originZIP": "53151", "destinationState":'
        ' "CA"'
    )
    reading = read(
        "usps",
        f'{{"trackingNumber": "9400100000000000000000", {ends}, "trackingEvents": [{event}]}}',
    )
    assert (reading.time.instant.isoformat(), reading.time.precision) == (
        "2026-02-23T00:00:00-06:00",
        TimePrecision.DAY,
    )
    assert (reading.time.tz_source, reading.time.flag) == (TzSource.LOCATION, "of_shipment")

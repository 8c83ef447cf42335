"""Carriers: registered, named, read in the zone of the account or as printed, contradictions included."""

import json
from datetime import UTC, datetime
from urllib.parse import quote_plus
from zoneinfo import ZoneInfo

import pytest

from events.carriers import CARRIERS
from events.carriers.carrier import Ack, Carrier, Hmac, RsaSha256, SharedHeader
from events.carriers.contradictions import without_contradictions
from events.errors import Cause, UnreadableMessageError
from events.event import Normalized, PrintedTime, Raw, Reading
from events.identity.ids import identify
from events.vocabulary import Kind, Status, TimePrecision, TzSource
from tests.events.carriers.bodies import SMALL, WITHOUT_SCANS
from tests.events.carriers.carrier_fixtures import (
    RECEIVED_AT,
    described,
    expectations,
    fixture_paths,
    read,
    scans,
)
from tests.events.carriers.other_formats import OTHER_FORMATS


@pytest.mark.parametrize("carrier_id", CARRIERS)
def test_fixtures_say_what_is_expected(carrier_id: str) -> None:
    expected = expectations(carrier_id)
    assert expected, "it has no fixtures"
    for expectation in expected.values():
        expectation.pop("shows", None)
    assert {
        path.name: described(carrier_id, read(CARRIERS[carrier_id], path.read_bytes()))
        for path in fixture_paths(carrier_id)
    } == expected


@pytest.mark.parametrize("carrier_id", sorted({small.carrier_id for small in SMALL}))
def test_small_bodies_say_what_is_expected(carrier_id: str) -> None:
    for small in (each for each in SMALL if each.carrier_id == carrier_id):
        normalized = read(CARRIERS[carrier_id], small.body)
        assert scans(normalized) == small.scans, small.shows
        if small.rejected is not None:
            pointers = [rejection.pointer for rejection in normalized.rejections]
            assert pointers == small.rejected, small.shows
        for reading in normalized.readings:
            assert (reading.time.tz_source is TzSource.RECEIVED) == (
                reading.time.instant == RECEIVED_AT
            ), small.shows
            assert reading.native_id is None or carrier_id == "sf_express", small.shows


@pytest.mark.parametrize("carrier_id", WITHOUT_SCANS)
def test_errors_notices_and_empty_answers_hold_nothing(carrier_id: str) -> None:
    for body in WITHOUT_SCANS[carrier_id]:
        assert read(CARRIERS[carrier_id], body) == Normalized(), body


@pytest.mark.parametrize("carrier_id", OTHER_FORMATS)
def test_another_format_is_refused(carrier_id: str) -> None:
    for body in OTHER_FORMATS[carrier_id]:
        with pytest.raises(UnreadableMessageError) as caught:
            read(CARRIERS[carrier_id], body)
        assert caught.value.cause is Cause.UNKNOWN_FORMAT, body


def test_every_carrier_has_bodies_without_scans_and_of_other_formats() -> None:
    assert WITHOUT_SCANS.keys() == OTHER_FORMATS.keys() == CARRIERS.keys() - {"canonical"}


def test_what_the_shipper_chose_stands_in_the_place_of_the_choice() -> None:
    chosen = (SharedHeader(header="X-Api-Key"),)
    assert CARRIERS["sendcloud"].schemes(chosen) == (Hmac(header="Sendcloud-Signature"), *chosen)
    assert CARRIERS["dpd"].schemes(chosen) == chosen
    assert CARRIERS["fedex"].schemes(chosen) == CARRIERS["fedex"].schemes()
    assert not CARRIERS["fedex"].leaves_choice


def test_shipengines_public_key_is_never_taken_for_a_token() -> None:
    assert [type(scheme) for scheme in CARRIERS["shipengine"].authentication] == [RsaSha256]


def test_ups_takes_only_200_for_a_yes_and_sf_only_its_own_xml() -> None:
    assert CARRIERS["ups"].ack.status == 200
    assert CARRIERS["sf_express"].ack == Ack(
        content_type="text/xml",
        body=b'<Response service="RoutePushService"><Head>OK</Head></Response>',
    )


def test_a_push_of_sf_in_a_form_field_says_the_same() -> None:
    xml = next(path for path in fixture_paths("sf_express") if path.name == "push.xml").read_bytes()
    carrier = CARRIERS["sf_express"]
    assert read(carrier, f"content={quote_plus(xml)}&x=1".encode()) == read(carrier, xml)


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TIME = PrintedTime(
    printed="2026-03-01T12:00:00Z",
    instant=NOW,
    tz_source=TzSource.EXPLICIT,
    precision=TimePrecision.SECOND,
    identity="20260301T120000",
)


def scan(status: Status, text: str | None, raw: Raw) -> Reading:
    return Reading(
        tracking_number="1", kind=Kind.SCAN, status=status, raw=raw, time=TIME, description=text
    )


def read_one(carrier: str, reading: Reading) -> Reading:
    return Normalized(readings=tuple(without_contradictions([reading], carrier))).readings[0]


@pytest.mark.parametrize(
    ("status", "text", "stated"),
    [
        (Status.EXCEPTION, "Unclaimed/Being Returned to Sender", Status.RETURNING),
        (Status.RETURNING, "<b>Delivered</b>", Status.DELIVERED),
    ],
)
def test_a_scan_whose_whole_text_states_another_status_is_unmapped(
    status: Status, text: str, stated: Status
) -> None:
    found = read_one("ups", scan(status, text, Raw(code="QQ")))
    assert (found.kind, found.status, found.contradicted) == (Kind.UNMAPPED, None, stated)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status.DELIVERED, None),
        (Status.DELIVERED, "Delivered"),
        (Status.RETURNED, "Delivered"),
        (Status.IN_TRANSIT, "Delivered"),
        (Status.EXCEPTION, "Delivery attempted, then something else happened"),
    ],
)
def test_a_text_that_says_no_other_status_leaves_the_code_alone(
    status: Status, text: str | None
) -> None:
    reading = scan(status, text, Raw(code="QQ"))
    assert read_one("ups", reading) == reading


def test_a_text_in_place_of_a_code_contradicts_nothing() -> None:
    reading = scan(Status.EXCEPTION, "Delivery Attempted", Raw())
    assert read_one("ups", reading) == reading


def test_a_text_that_the_public_list_prints_for_the_code_contradicts_nothing() -> None:
    not_delivered = scan(Status.EXCEPTION, "Not delivered", Raw(code="ND"))
    assert read_one("dhl_express", not_delivered) == not_delivered
    assert read_one("ups", not_delivered).contradicted is Status.DELIVERY_ATTEMPTED


def read_first(carrier_id: str, body: str) -> Reading:
    carrier = CARRIERS[carrier_id]
    return carrier.normalizers[carrier.stable](body.encode(), RECEIVED_AT).readings[0]


def canada_post(date: str, zone: str, site: str, province: str) -> Reading:
    return read_first(
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
    reading = read_first(
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
    reading = read_first(
        "ups", f'{{"trackResponse": {{"shipment": [{{"package": [{package}]}}]}}}}'
    )
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
    reading = read_first(
        "usps",
        f'{{"trackingNumber": "9400100000000000000000", {ends}, "trackingEvents": [{event}]}}',
    )
    assert (reading.time.instant.isoformat(), reading.time.precision) == (
        "2026-02-23T00:00:00-06:00",
        TimePrecision.DAY,
    )
    assert (reading.time.tz_source, reading.time.flag) == (TzSource.LOCATION, "of_shipment")


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

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


@pytest.mark.parametrize(
    ("carrier_id", "status", "text", "code", "stated"),
    [
        (
            "ups",
            Status.EXCEPTION,
            "Unclaimed/Being Returned to Sender",
            "QQ",
            Status.RETURNING,
        ),
        ("ups", Status.RETURNING, "<b>Delivered</b>", "QQ", Status.DELIVERED),
        ("ups", Status.DELIVERED, None, "QQ", None),
        ("ups", Status.DELIVERED, "Delivered", "QQ", None),
        ("ups", Status.RETURNED, "Delivered", "QQ", None),
        ("ups", Status.IN_TRANSIT, "Delivered", "QQ", None),
        ("ups", Status.EXCEPTION, "Delivery attempted, then something else happened", "QQ", None),
        # a text in place of a code
        ("ups", Status.EXCEPTION, "Delivery Attempted", None, None),
        # the public list prints it for the code
        ("dhl_express", Status.EXCEPTION, "Not delivered", "ND", None),
        ("ups", Status.EXCEPTION, "Not delivered", "ND", Status.DELIVERY_ATTEMPTED),
    ],
)
def test_a_scan_whose_whole_text_states_another_status_is_unmapped(
    carrier_id: str, status: Status, text: str | None, code: str | None, stated: Status | None
) -> None:
    reading = scan(status, text, Raw(code=code))
    (found,) = without_contradictions([reading], carrier_id)
    if stated is None:
        assert found == reading
    else:
        assert (found.kind, found.status, found.contradicted) == (Kind.UNMAPPED, None, stated)


def canada_post(date: str, zone: str, site: str, province: str) -> str:
    return (
        "<tracking-detail><pin>1</pin><significant-events><occurrence>"
        f"<event-identifier>0170</event-identifier><event-date>{date}</event-date>"
        f"<event-time>10:00:00</event-time><event-time-zone>{zone}</event-time-zone>"
        "<event-description>Item processed</event-description>"
        f"<event-site>{site}</event-site><event-province>{province}</event-province></occurrence>"
        "</significant-events></tracking-detail>"
    )


def australia_post(place: str) -> str:
    event = {"location": place, "description": "In transit", "date": "2026-02-02T09:10:00"}
    item = {"article_id": "1", "events": [event]}
    return json.dumps({"tracking_results": [{"tracking_id": "1", "trackable_items": [item]}]})


def ups(status: str, code: str) -> str:
    """Print a label with a country alone, of a parcel from Oregon to Massachusetts."""
    ends = [
        {"type": kind, "address": {"city": city, "stateProvince": state, "country": "US"}}
        for kind, city, state in (("ORIGIN", "SALEM", "OR"), ("DESTINATION", "BOSTON", "MA"))
    ]
    activity = {
        "location": {"address": {"countryCode": "US"}},
        "status": {"type": status, "description": "x", "code": code},
        "date": "20240131",
        "time": "173405",
    }
    package = {"trackingNumber": "1Z1", "packageAddress": ends, "activity": [activity]}
    return json.dumps({"trackResponse": {"shipment": [{"package": [package]}]}})


USPS_NOTICE = {
    "trackingNumber": "9400100000000000000000",
    "originCity": "NEW BERLIN",
    "originState": "WI",
    "originZIP": "53151",
    "destinationState": "CA",
    "trackingEvents": [
        {"eventType": "Pre-Shipment, USPS Awaiting Item", "eventTimestamp": "2026-02-23T00:00:00"}
    ],
}
STATED = (TzSource.EXPLICIT, None)
SYDNEY = (TzSource.CARRIER_DEFAULT, None)
OF_SHIPMENT = (TzSource.LOCATION, "of_shipment")


@pytest.mark.parametrize(
    ("carrier_id", "body", "instant", "source"),
    [
        # names of standard time, all year
        *(
            ("canadapost", canada_post(date, *printed), f"{date}T10:00:00{offset}", STATED)
            for date, *printed, offset in (
                ("2026-02-10", "EST", "TORONTO", "ON", "-05:00"),
                ("2026-09-10", "EST", "TORONTO", "ON", "-04:00"),
                ("2026-09-10", "HNE", "MONTREAL", "QC", "-04:00"),
                ("2026-09-10", "EDT", "TORONTO", "ON", "-04:00"),
                ("2026-09-10", "PST", "VANCOUVER", "BC", "-07:00"),
                ("2026-09-10", "CSTNO", "REGINA", "SK", "-06:00"),
                ("2026-02-10", "EST", "WINNIPEG", "MB", "-05:00"),
            )
        ),
        # the time of Sydney, wherever the scan was
        *(
            ("australiapost", australia_post(place), "2026-02-02T09:10:00+11:00", SYDNEY)
            for place in ("CHICAGO, UNITED STATES", "BRISBANE QLD")
        ),
        # a place that is a country alone, or none: the time of the shipper, or of the consignee
        *(
            ("ups", ups(status, code), f"2024-01-31T17:34:05{offset}", OF_SHIPMENT)
            for status, code, offset in (
                ("M", "MP", "-08:00"),
                ("D", "KB", "-05:00"),
                ("I", "DP", "-08:00"),
            )
        ),
        ("usps", json.dumps(USPS_NOTICE), "2026-02-23T00:00:00-06:00", OF_SHIPMENT),
    ],
)
def test_a_time_is_in_the_zone_that_its_carrier_prints(
    carrier_id: str, body: str, instant: str, source: tuple[TzSource, str | None]
) -> None:
    (reading,) = CARRIERS[carrier_id].read(body.encode(), RECEIVED_AT).readings
    assert reading.time.instant.isoformat() == instant
    assert (reading.time.tz_source, reading.time.flag) == source


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

import pytest

from events.carriers.usps import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_v3_scans_take_their_offset_from_the_pair_the_field_or_the_place() -> None:
    said = normalized(CARRIER, "v3_delivered.json")

    assert told(said) == [
        ("9400100000000000000011", "01", "returned", "2026-03-08T10:00:00-04:00"),
        ("9400100000000000000011", "01", "delivered", "2026-03-07T13:58:00-06:00"),
        ("9400100000000000000011", "OF", "out_for_delivery", "2026-03-07T09:10:00-06:00"),
        ("9400100000000000000011", "ZZ", "unmapped", "2026-03-06T09:10:00+09:00"),
        ("9400100000000000000011", "TL", "in_transit", "2026-03-05T01:11:00-06:00"),
    ]
    assert [reading.time.tz_source for reading in said.readings] == [
        TzSource.PAIR,
        TzSource.LOCATION,
        TzSource.EXPLICIT,
        TzSource.LOCATION,
        TzSource.CARRIER_DEFAULT,
    ]


def test_a_name_is_the_signer_on_a_delivered_scan_only() -> None:
    assert [reading.signed_by for reading in normalized(CARRIER, "v3_delivered.json").readings] == [None, "P SAMPLE", None, None, None]


def test_scans_without_codes_are_read_by_their_whole_text() -> None:
    said = normalized(CARRIER, "webtools_text_only.xml")

    assert told(said)[:3] == [
        ("EJ000000001US", "Delivered, To Agent", "in_transit", "2026-05-05T23:07:00-07:00"),
        ("EJ000000001US", "Delivered to a place with a new name", "unmapped", "2026-05-05T08:00:00-07:00"),
        ("EJ000000001US", "Shipping Label Created", "info_received", "2026-11-21T12:00:00+00:00"),
    ]
    assert said.readings[0].estimated_delivery == "2026-05-07"
    assert said.readings[2].time.tz_source is TzSource.RECEIVED


def test_a_dated_sentence_is_an_unmapped_scan_and_one_without_a_date_is_a_notice() -> None:
    said = normalized(CARRIER, "webtools_text_only.xml")

    assert told(said)[3:] == [("EJ000000003US", None, "unmapped", "2026-04-05T12:55:00-05:00")]
    assert said.rejections == ()


def test_the_resellers_view_names_no_number() -> None:
    assert told(normalized(CARRIER, "stamps.xml")) == [(None, "Delivered", "delivered", "2026-07-19T10:32:00-04:00")]


def test_one_event_may_stand_for_the_list_and_twice_in_one_message() -> None:
    event = b'{"eventType": "Out for Delivery", "eventTimestamp": "2026-03-07T09:10:00", "eventCode": "OF", "eventState": "NY"}'

    said = read(CARRIER, b'[{"trackingNumber": "94", "trackSummary": %b, "trackingEvents": [%b]}, null]' % (event, event))

    assert told(said) == [("94", "OF", "out_for_delivery", "2026-03-07T09:10:00-05:00")]
    assert [rejection.pointer for rejection in said.rejections] == ["/1"]


def test_the_rollup_speaks_only_where_there_are_no_scans() -> None:
    said = read(CARRIER, b'{"trackingNumber": "94", "status": "Out for Delivery", "statusCategory": "Out for Delivery"}')
    assert told(said) == [("94", "Out for Delivery", "out_for_delivery", "2026-11-21T12:00:00+00:00")]


@pytest.mark.parametrize("body", [b"{}", b'{"error": {"code": "404"}}', b"<Error><Number>-1</Number></Error>", b"<TrackResponse/>"])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"<html/>", b"1", b'{"hello": 1}'])
def test_other_bodies_are_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

import pytest

from events.carriers.carrier import Hmac
from events.carriers.easypost import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import Reason, TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_a_detail_refines_its_status_and_never_hides_a_later_one() -> None:
    said = normalized(CARRIER, "webhook_delivered.json")

    assert told(said) == [
        ("9400999", "pre_transit/label_created", "info_received", "2026-04-01T08:00:00+00:00"),
        ("9400999", "in_transit/received_at_origin_facility", "picked_up", "2026-04-01T10:00:00+00:00"),
        ("9400999", "failure/delivery_exception/DE", "delivery_attempted", "2026-04-02T10:00:00+00:00"),
        ("9400999", "failure/damaged", "exception", "2026-04-02T11:00:00+00:00"),
        ("9400999", "out_for_delivery/arrived_at_facility", "out_for_delivery", "2026-04-03T08:00:00+00:00"),
        ("9400999", "delivered/arrived_at_destination/01", "delivered", "2026-04-03T11:00:00+00:00"),
    ]
    assert said.readings[3].reason is Reason.DAMAGED


def test_the_signer_belongs_to_the_delivery_and_a_delivered_tracker_has_no_estimate() -> None:
    said = normalized(CARRIER, "webhook_delivered.json")

    assert [reading.signed_by for reading in said.readings] == [None] * 5 + ["P SAMPLE"]
    assert {reading.estimated_delivery for reading in said.readings} == {None}


def test_an_unknown_detail_leaves_the_status_standing_and_an_unknown_status_is_unmapped() -> None:
    said = normalized(CARRIER, "tracker_odd_members.json")

    assert told(said) == [
        ("77", "error/expired", "info", "2026-11-21T12:00:00+00:00"),
        ("77", "brand_new", "unmapped", "2026-04-01T08:00:00+00:00"),
        ("77", "in_transit/brand_new", "in_transit", "2026-04-01T09:00:00+00:00"),
    ]
    assert [reading.by_category for reading in said.readings] == [False, False, True]
    assert said.readings[0].time.tz_source is TzSource.RECEIVED
    assert [rejection.pointer for rejection in said.rejections] == ["/tracking_details/0", "/tracking_details/1", "/tracking_details/5"]


def test_the_estimate_carries_the_stamp_of_the_tracker() -> None:
    newest = normalized(CARRIER, "tracker_odd_members.json").readings[2]
    assert (newest.estimated_delivery, newest.stamp) == ("2026-04-05", "2026-04-03T12:00:00Z")


def test_the_rollup_speaks_only_where_there_are_no_scans() -> None:
    assert told(normalized(CARRIER, "tracker_without_scans.json")) == [
        ("78", "pre_transit/unknown", "info_received", "2026-04-03T12:00:00+00:00")
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"object": "Event", "description": "tracker.updated"}',
        b'{"object": "Event", "description": "batch.created", "result": {"object": "Batch", "status": {"created": 1}}}',
        b'{"object": "Tracker", "tracking_code": "EZ7", "status": "error", "tracking_details": []}',
        b'{"error": {"code": "TRACKER.NOT_FOUND"}}',
    ],
)
def test_messages_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"[1]", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT


def test_the_signature_is_hex_with_its_prefix_under_a_normalised_secret() -> None:
    assert CARRIER.authentication == (Hmac(header="X-Hmac-Signature", prefix="hmac-sha256-hex=", nfkd=True),)

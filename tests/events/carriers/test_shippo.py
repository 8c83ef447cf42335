import pytest

from events.carriers.carrier import TimestampedHmac, UrlToken
from events.carriers.shippo import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_a_substatus_refines_its_status_but_never_takes_a_delivery_back() -> None:
    said = normalized(CARRIER, "track_updated.json")

    assert told(said) == [
        ("92000001", "UNKNOWN", "info", "2026-03-01T10:00:00+00:00"),
        ("92000001", "TRANSIT/package_accepted", "picked_up", "2026-03-02T10:00:00-08:00"),
        ("92000001", "TRANSIT/brand_new", "in_transit", "2026-03-02T11:00:00+00:00"),
        ("92000001", "FAILURE/package_lost", "lost", "2026-03-03T11:00:00+00:00"),
        ("92000001", "DELIVERED/package_held", "delivered", "2026-03-02T12:00:00+00:00"),
        ("92000001", "BRAND_NEW", "unmapped", "2026-03-02T13:00:00+00:00"),
    ]
    assert [reading.by_category for reading in said.readings] == [False, False, True, False, False, False]
    assert [reading.native_id for reading in said.readings] == ["a1", "a2", "a3", "a4", None, "a6"]


def test_the_z_of_a_time_is_not_true() -> None:
    readings = normalized(CARRIER, "track_updated.json").readings
    assert [readings[0].time.tz_source, readings[1].time.tz_source] == [TzSource.ASSUMED_UTC, TzSource.LOCATION]


def test_the_rollup_speaks_only_where_there_are_no_scans() -> None:
    said = read(CARRIER, b'{"tracking_number": "9", "tracking_history": [], "tracking_status": {"object_id": "b", "status": "TRANSIT"}}')
    assert told(said) == [("9", "TRANSIT", "in_transit", "2026-11-21T12:00:00+00:00")]
    assert said.readings[0].native_id is None


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"event": "transaction_created", "data": {"object_id": "x"}}',
        b'{"detail": "no"}',
        b'{"tracking_status": {"status": "UNKNOWN"}, "tracking_history": []}',
    ],
)
def test_messages_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b"[1]", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT


def test_the_signature_covers_a_timestamp() -> None:
    assert CARRIER.authentication == (TimestampedHmac(header="Shippo-Auth-Signature"), UrlToken())

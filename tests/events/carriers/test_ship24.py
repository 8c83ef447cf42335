import pytest

from events.carriers.carrier import SharedHeader, UrlToken
from events.carriers.ship24 import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TimePrecision, TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_an_event_has_its_own_number_and_id_and_without_a_code_its_milestone() -> None:
    said = normalized(CARRIER, "webhook.json")

    assert told(said) == [
        ("T2", "delivery_delivered", "delivered", "2026-03-04T17:12:57-08:00"),
        ("T1", None, "in_transit", "2026-03-03T17:12:57+08:00"),
        ("T1", None, "info", "2026-03-02T00:00:00+00:00"),
        ("T1", "brand_new", "unmapped", "2026-03-01T10:00:00+00:00"),
    ]
    assert [reading.native_id for reading in said.readings] == ["a", "b", "c", "d"]
    assert [reading.by_category for reading in said.readings] == [False, True, False, False]


def test_an_offset_in_its_own_field_is_trusted_and_the_z_without_it_is_not() -> None:
    readings = normalized(CARRIER, "webhook.json").readings
    assert [reading.time.tz_source for reading in readings] == [
        TzSource.LOCATION,
        TzSource.EXPLICIT,
        TzSource.ASSUMED_UTC,
        TzSource.ASSUMED_UTC,
    ]
    assert readings[2].time.precision is TimePrecision.DAY
    assert readings[0].signed_by == "P SAMPLE"


@pytest.mark.parametrize(
    "body", [b"{}", b'{"trackings": []}', b'{"errors": [], "data": null}', b'{"trackings": [{"metadata": {"topic": "tracking/pod"}}]}']
)
def test_messages_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b"[1]", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT


def test_the_secret_is_a_bearer_token() -> None:
    assert CARRIER.authentication == (SharedHeader(header="Authorization", prefix="Bearer "), UrlToken())

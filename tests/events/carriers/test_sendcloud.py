import pytest

from events.carriers.carrier import Hmac
from events.carriers.sendcloud import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_status_holds_since_the_push() -> None:
    said = normalized(CARRIER, "parcel_status_changed.json")

    assert told(said) == [("3SSAMPLE1", "11", "delivered", "2026-03-03T08:00:00.123000+00:00")]
    assert said.readings[0].time.printed == "1772524800123"
    assert said.readings[0].place.city is None


def test_false_stands_for_no_number_and_an_unknown_status_is_unmapped() -> None:
    said = read(CARRIER, b'{"action": "x", "timestamp": "1772524800", "parcel": {"tracking_number": false, "status": {"id": "77"}}}')
    assert told(said) == [(None, "77", "unmapped", "2026-03-03T08:00:00+00:00")]


@pytest.mark.parametrize("body", [b"{}", b'{"action": "integration_connected", "timestamp": 1}', b'{"error": {"code": 404}}'])
def test_other_webhooks_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


def test_a_timestamp_that_is_no_number_is_rejected() -> None:
    said = read(CARRIER, b'{"timestamp": "soon", "parcel": {"status": {"id": 1}}}')
    assert [rejection.pointer for rejection in said.rejections] == ["/parcel/status"]


@pytest.mark.parametrize("body", [b"1", b"[1]", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT


def test_the_signature_is_hex() -> None:
    assert CARRIER.authentication == (Hmac(header="Sendcloud-Signature"),)

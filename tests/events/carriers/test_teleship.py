import pytest

from events.carriers.carrier import Hmac, UrlToken
from events.carriers.teleship import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_codes_mean_the_same_in_capitals_and_are_kept_as_printed() -> None:
    said = normalized(CARRIER, "webhook.json")

    assert told(said) == [
        ("TELESHIP1", "OUT_FOR_DELIVERY", "out_for_delivery", "2026-03-03T14:30:00+00:00"),
        ("TELESHIP1", "picked_up", "picked_up", "2026-03-02T14:30:00+00:00"),
        ("TELESHIP1", "BEAMED", "unmapped", "2026-03-01T14:30:00+00:00"),
    ]
    assert [reading.place.country for reading in said.readings] == [None, "GB", None]
    assert said.readings[0].estimated_delivery == "2026-03-06"


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"eventName": "label.generated", "data": {"events": [{"code": "x"}]}}', b'{"messages": []}', b'{"trackingNumber": "T"}'],
)
def test_messages_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b'{"data": {"hello": 1}}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT


def test_the_signature_is_hex() -> None:
    assert CARRIER.authentication == (Hmac(header="x-teleship-signature"), UrlToken())

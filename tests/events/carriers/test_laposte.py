import pytest

from events.carriers.laposte import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_a_list_may_hold_shipments_and_errors() -> None:
    said = normalized(CARRIER, "list_with_an_error.json")

    assert told(said) == [
        ("6A00000000001", "AG1", "available_for_pickup", "2026-03-04T08:00:00+01:00"),
        ("6A00000000001", "ND9", "unmapped", "2026-03-03T08:00:00+01:00"),
        ("6A00000000001", "PC1", "picked_up", "2026-03-02T08:00:00+01:00"),
        ("6A00000000003", "DI2", "returned", "2026-03-04T09:00:00+01:00"),
    ]
    assert said.readings[1].time.tz_source is TzSource.CARRIER_DEFAULT
    assert (said.readings[0].description, said.readings[0].estimated_delivery) == ("Votre colis vous attend .", "2026-03-06T10:00:00+01:00")


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"returnCode": 400}', b'{"code": "UNAUTHORIZED", "message": "no"}'])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b'[{"hello": 1}]'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

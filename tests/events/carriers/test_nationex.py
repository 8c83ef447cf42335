import pytest

from events.carriers.nationex import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_shipment_and_its_parcels_tell_their_own_histories() -> None:
    said = normalized(CARRIER, "shipment.json")

    assert told(said) == [
        ("100000001", "OutForDelivery", "out_for_delivery", "2026-03-02T14:00:00+00:00"),
        ("50100000001", "ExceptionId 5", "delivery_attempted", "2026-03-02T13:31:00-05:00"),
        ("50100000001", "ExceptionId 999", "unmapped", "2026-03-02T15:31:00-05:00"),
    ]
    assert [reading.native_id for reading in said.readings] == [None, "3001", "3002"]
    assert [reading.estimated_delivery for reading in said.readings] == [None, "2026-03-05", None]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"code": 404, "message": "no"}', b'{"ShipmentId": 1}'])
def test_answers_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


def test_other_json_is_an_unknown_format() -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, b'{"hello": 1}')
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

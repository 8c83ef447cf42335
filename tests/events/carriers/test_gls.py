import pytest

from events.carriers.gls import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_parcels_beside_errors_are_read_and_a_shop_is_no_delivery() -> None:
    said = normalized(CARRIER, "parcels.json")

    assert told(said) == [
        ("40000000003", "DELIVD.PARCELSHOP", "available_for_pickup", "2026-02-05T10:46:14+01:00"),
        ("40000000003", "INBOUD.SORTED_BY_HAND", "in_transit", "2026-02-04T10:46:14+00:00"),
        ("40000000003", "DELIVD.NEWPLACE", "unmapped", "2026-02-03T10:46:14+01:00"),
        ("40000000004", "PREADVICE", "info_received", "2026-02-01T08:00:00+01:00"),
    ]
    assert [reading.by_category for reading in said.readings] == [False, True, False, False]
    assert [rejection.pointer for rejection in said.rejections] == ["/parcels/3", "/parcels/1/events/3"]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"errors": []}', b'{"parcels": [{"requested": "1", "errorCode": "E"}]}'])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b"[1]"])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

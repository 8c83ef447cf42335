import pytest

from events.carriers.dicom import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.identity import identify
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_parcels_of_a_waybill_are_its_pieces() -> None:
    said = normalized(CARRIER, "two_parcels.json")

    assert told(said) == [
        ("W0000001", "DL/FD", "delivered", "2026-02-05T15:00:00+00:00"),
        ("W0000001", "DL/FD", "delivered", "2026-02-05T15:00:00+00:00"),
        ("W0000001", "ZZ", "unmapped", "2026-02-04T15:00:00-05:00"),
    ]
    assert [reading.piece for reading in said.readings] == ["1", "2", "1"]
    assert len({identify(reading, carrier_id="dicom", digest=bytes).event_id for reading in said.readings}) == 3
    assert [rejection.pointer for rejection in said.rejections] == ["/activities/3"]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"message": "Not found"}', b'{"trackingNumber": "W1", "activities": null}'])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b"[1]"])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

import pytest

from events.carriers.morneau import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_an_order_tells_its_history() -> None:
    assert told(normalized(CARRIER, "order.json")) == [
        ("8910000000001", "PICKD", "picked_up", "2026-03-02T08:00:00-05:00"),
        ("8910000000001", "NEWCODE/R1", "unmapped", "2026-03-03T08:00:00-07:00"),
        ("8910000000001", "DELVD", "delivered", "2026-11-21T12:00:00+00:00"),
    ]


def test_the_ordinal_is_the_id_within_the_order() -> None:
    readings = normalized(CARRIER, "order.json").readings
    assert [(reading.native_id, reading.native_id_per_number) for reading in readings] == [("1", True), ("2", True), ("3", True)]


@pytest.mark.parametrize("body", [b"{}", b'{"Message": {"Code": "TrackingNotFound"}}', b'{"OrderTracking": null}'])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


def test_other_json_is_an_unknown_format() -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, b'{"hello": 1}')
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

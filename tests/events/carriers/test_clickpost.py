import pytest

from events.carriers.clickpost import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_a_push_is_one_scan_in_indian_time() -> None:
    said = normalized(CARRIER, "out_for_delivery.json")

    assert told(said) == [("CP0000000001", "6", "out_for_delivery", "2026-03-01T09:10:00+05:30")]
    reading = said.readings[0]
    assert (reading.time.tz_source, reading.time.zone) == (TzSource.CARRIER_DEFAULT, "Z")
    assert (reading.raw.further, reading.estimated_delivery) == (("UD-OFD",), "2026-03-01")


def test_a_return_order_without_a_waybill_moves_nothing_on_the_forward_one() -> None:
    said = read(CARRIER, b'{"waybill": "", "clickpost_status_code": "101", "additional": {"forward_awb": "F1"}}')
    assert told(said) == [("F1", "101", "info", "2026-11-21T12:00:00+00:00")]


def test_an_unknown_code_is_unmapped_and_none_is_rejected() -> None:
    said = read(CARRIER, b'[{"waybill": "A", "clickpost_status_code": 777}, {"waybill": "B"}, 7]')
    assert told(said) == [("A", "777", "unmapped", "2026-11-21T12:00:00+00:00")]
    assert [rejection.pointer for rejection in said.rejections] == ["/2", "/1"]


def test_an_empty_push_is_empty() -> None:
    assert read(CARRIER, b"{}").readings == ()


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b"[1]"])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

import pytest

from events.carriers.delhivery import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_status_is_told_once_and_a_word_is_read_with_its_type() -> None:
    said = normalized(CARRIER, "answer.json")

    assert told(said) == [
        ("1400000000001", "DL/Delivered", "delivered", "2026-02-05T16:42:00.123000+05:30"),
        ("1400000000001", "RT/In Transit", "returning", "2026-02-04T09:00:00+05:30"),
        ("1400000000001", "UD/Brand new", "unmapped", "2026-02-03T09:00:00+05:30"),
        ("1400000000002", "PP/Dispatched", "info_received", "2026-02-05T10:00:00+05:30"),
    ]
    assert said.readings[0].signed_by == "P SAMPLE"
    assert (said.readings[3].raw.further, said.readings[3].estimated_delivery) == (("X-UCI",), "2026-02-09")
    assert len(said.rejections) == 2


def test_a_status_that_no_scan_repeats_is_a_scan_of_its_own() -> None:
    body = b'{"Shipment": {"AWB": "A", "Status": {"Status": "Delivered"}, "Scans": [{"ScanDetail": {"Scan": "Out for delivery"}}]}}'
    assert [code for _, code, _, _ in told(read(CARRIER, body))] == ["Delivered", "Out for delivery"]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"Error": "x"}', b'{"ShipmentData": []}'])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b"[1]"])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

import pytest

from events.carriers.dtdc import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TimePrecision
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_dates_have_the_day_first_and_are_indian() -> None:
    said = normalized(CARRIER, "answer.json")

    assert told(said) == [
        ("B00000001", "DLV", "delivered", "2026-02-05T16:14:00+05:30"),
        ("B00000001", "IBMD", "in_transit", "2026-02-04T06:03:00+05:30"),
        ("B00000001", "QQ", "unmapped", "2026-02-04T00:00:00+05:30"),
    ]
    assert (said.readings[1].raw.further, said.readings[2].time.precision) == (("M1",), TimePrecision.DAY)
    assert [rejection.pointer for rejection in said.rejections] == ["/trackDetails/3"]


def test_a_push_prints_the_code_as_the_action() -> None:
    body = b"""{"shipment": {"strShipmentNo": "B2"}, "shipmentStatus":
        {"strAction": "OUTDLV", "strActionDesc": "Out", "strActionDate": "05022026", "strActionTime": "0900"}}"""
    assert told(read(CARRIER, body)) == [("B2", "OUTDLV", "out_for_delivery", "2026-02-05T09:00:00+05:30")]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"statusFlag": false, "errorDetails": [{"name": "x"}]}'])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b"[1]"])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

import pytest

from events.carriers.dhl_poland import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_events_are_in_polish_time_and_the_receiver_signed_the_delivery() -> None:
    said = normalized(CARRIER, "delivered.xml")

    assert told(said) == [
        ("24000000001", "DOR", "delivered", "2026-02-05T11:20:00+01:00"),
        ("24000000001", "QQQ", "unmapped", "2026-02-05T07:00:00+01:00"),
    ]
    assert [reading.signed_by for reading in said.readings] == ["P SAMPLE", None]
    assert [rejection.pointer for rejection in said.rejections] == ["events/item[3]"]


@pytest.mark.parametrize("body", [b"<Fault><faultcode>100</faultcode></Fault>", b"<getTrackAndTraceInfoResponse/>"])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


def test_other_xml_is_an_unknown_format() -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, b"<html/>")
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

import pytest

from events.carriers.purolator import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TimePrecision
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_type_decides_and_under_other_the_whole_text() -> None:
    said = normalized(CARRIER, "by_pin.xml")

    assert told(said) == [
        ("M000000001", "Delivery", "delivered", "2026-03-04T09:05:00-07:00"),
        ("M000000001", "Other", "in_transit", "2026-03-04T06:05:00-07:00"),
        ("M000000001", "Other", "unmapped", "2026-03-04T05:05:00-07:00"),
        ("M000000001", "Undeliverable", "delivery_attempted", "2026-03-03T00:00:00-05:00"),
    ]
    assert said.readings[0].signed_by == "P SAMPLE"
    assert said.readings[3].time.precision is TimePrecision.DAY


def test_a_fault_is_empty_and_another_document_an_unknown_format() -> None:
    assert read(CARRIER, b"<Envelope><Body><Fault/></Body></Envelope>").readings == ()
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, b"<html/>")
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

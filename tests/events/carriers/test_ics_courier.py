import pytest

from events.carriers.ics_courier import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_texts_are_read_whole_but_for_the_place_in_them() -> None:
    assert told(normalized(CARRIER, "two_parcels.xml")) == [
        ("ND6CN1", None, "delivered", "2026-02-03T09:00:00-05:00"),
        ("ND6CN1", None, "in_transit", "2026-02-03T04:00:00-06:00"),
        ("ND6CN2", None, "out_for_delivery", "2026-02-03T07:00:00-05:00"),
        ("ND6CN2", None, "unmapped", "2026-02-03T07:30:00-05:00"),
    ]


def test_only_a_delivery_tells_who_signed_and_an_address_is_no_place() -> None:
    readings = normalized(CARRIER, "two_parcels.xml").readings
    assert [reading.signed_by for reading in readings] == ["P SAMPLE", None, None, None]
    assert [reading.place.city for reading in readings] == [None, "REGINA", None, None]


def test_a_fault_is_empty_and_another_document_an_unknown_format() -> None:
    assert read(CARRIER, b"<Envelope><Body><Fault/></Body></Envelope>").readings == ()
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, b"<html/>")
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

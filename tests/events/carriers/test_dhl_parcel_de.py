import pytest

from events.carriers.dhl_parcel_de import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import Reason
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_ice_ric_and_the_standard_code_say_an_event_together() -> None:
    said = normalized(CARRIER, "two_pieces.xml")

    assert told(said) == [
        ("00340000000000000001", "LDTMV/MVMTV/AA", "in_transit", "2026-03-29T03:30:00+02:00"),
        ("00340000000000000001", "LDTMV/MVMTV/PO", "out_for_delivery", "2026-03-30T08:00:00+02:00"),
        ("00340000000000000001", "NTDEL/NHOME/ZN", "delivery_attempted", "2026-03-30T09:00:00+02:00"),
        ("00340000000000000001", "STORN/NRQRD/DD", "correction", "2026-03-30T09:05:00+02:00"),
        ("00340000000000000001", "DLVRD/HNDTC/ZU", "in_transit", "2026-03-30T10:00:00+02:00"),
        ("00340000000000000001", "DLVRD/OTHER/ZU", "delivered", "2026-03-30T11:00:00+02:00"),
        ("00340000000000000001", "QQQQQ/QQQQQ/EE", "in_transit", "2026-03-30T12:00:00+02:00"),
        ("00340000000000000001", "QQQQQ/QQQQQ/BV", "unmapped", "2026-03-30T12:01:00+02:00"),
        ("00340000000000000002", "DLVRD/ACCPT/ZU", "returned", "2026-03-30T12:00:00+02:00"),
    ]
    assert said.readings[2].reason is Reason.CONSIGNEE_ABSENT
    assert [reading.by_category for reading in said.readings[5:8]] == [False, True, False]
    assert [rejection.pointer for rejection in said.rejections] == ["piece-shipment[1]/piece-event[9]"]


def test_a_country_is_known_in_both_languages() -> None:
    assert [reading.place.country for reading in normalized(CARRIER, "two_pieces.xml").readings[:2]] == ["DE", "DE"]


def test_the_recipient_signed_the_delivery_to_the_consignee_only() -> None:
    assert [reading.signed_by for reading in normalized(CARRIER, "two_pieces.xml").readings[4:6]] == [None, "P Sample"]


def test_a_missing_hour_is_flagged() -> None:
    assert normalized(CARRIER, "two_pieces.xml").readings[0].time.flag == "shifted"


def test_an_answer_without_pieces_is_empty() -> None:
    said = read(CARRIER, b'<data name="piece-shipment-list" code="100" error="No data found"/>')
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"<html/>", b"<data/>"])
def test_other_xml_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

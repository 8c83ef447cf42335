import pytest

from events.carriers.bpost import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TimePrecision, TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_states_are_scans_under_any_prefix() -> None:
    said = normalized(CARRIER, "two_items.xml")

    assert told(said) == [
        ("3232000000000000000001", "U01", "delivered", "2026-02-03T09:31:07.427000+01:00"),
        ("3232000000000000000001", "Z77", "unmapped", "2026-02-02T00:00:00+01:00"),
        ("3232000000000000000002", "L00", "out_for_delivery", "2026-02-03T07:00:00+01:00"),
    ]
    assert said.readings[1].time.precision is TimePrecision.DAY
    assert said.readings[2].time.tz_source is TzSource.CARRIER_DEFAULT
    assert [rejection.pointer for rejection in said.rejections] == ["stateInfo[3]", "stateInfo[4]"]


@pytest.mark.parametrize(
    "body", [b"<systemException/>", b"<b:businessException xmlns:b='x'/>", b"<itemTracking><itemCode>1</itemCode></itemTracking>"]
)
def test_exceptions_and_items_without_states_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


def test_other_xml_is_an_unknown_format() -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, b"<html/>")
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

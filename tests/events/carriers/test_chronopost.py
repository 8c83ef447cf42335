import pytest

from events.carriers.chronopost import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_events_of_a_parcel_bear_its_number() -> None:
    said = normalized(CARRIER, "answer.xml")

    assert told(said) == [
        ("XX000000001FR", "TA", "out_for_delivery", "2026-02-03T07:12:05+01:00"),
        ("XX000000001FR", "D", "delivered", "2026-02-03T08:30:00+01:00"),
        ("XX000000001FR", "ZQ", "unmapped", "2026-02-02T08:30:00+01:00"),
    ]
    assert said.readings[2].time.tz_source is TzSource.CARRIER_DEFAULT
    assert [rejection.pointer for rejection in said.rejections] == ["listEventInfoComp/events[4]"]


def test_the_receiver_is_believed_on_a_delivery_only() -> None:
    assert [reading.signed_by for reading in normalized(CARRIER, "answer.xml").readings] == [None, "P SAMPLE", None]


@pytest.mark.parametrize(
    "body", [b"<trackSkybillV2Response><return><errorCode>1</errorCode></return></trackSkybillV2Response>", b"<Fault/>"]
)
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


def test_other_xml_is_an_unknown_format() -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, b"<html/>")
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

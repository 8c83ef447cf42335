import pytest

from events.carriers.landmark import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_landmarks_own_number_is_the_number_and_both_forms_of_a_time_are_read() -> None:
    said = normalized(CARRIER, "two_packages.xml")

    assert told(said) == [
        ("LTN1N1", "90", "exception", "2026-02-03T00:05:00-08:00"),
        ("LTN1N1", "200", "in_transit", "2026-02-04T13:00:01+00:00"),
        ("LTN1N1", "999", "unmapped", "2026-02-05T13:00:01+01:00"),
        ("1ZALONE", "500", "delivered", "2026-02-06T13:05:00-05:00"),
    ]
    assert said.readings[1].time.tz_source is TzSource.ASSUMED_UTC
    assert said.readings[1].description == "Moved on"
    assert [rejection.pointer for rejection in said.rejections] == ["Package[1]/Event[4]"]


@pytest.mark.parametrize("body", [b"<TrackResponse><Errors><Error/></Errors></TrackResponse>", b"<ErrorResponse/>"])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


def test_another_document_is_an_unknown_format() -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, b"<html/>")
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

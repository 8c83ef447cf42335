import pytest

from events.carriers.tnt import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_one_number_may_stand_for_several_consignments() -> None:
    said = normalized(CARRIER, "consignments.xml")

    assert told(said) == [
        ("100000001", "OK", "delivered", "2026-03-04T08:41:00+00:00"),
        ("100000001", "QQ", "unmapped", "2026-03-04T00:00:00+00:00"),
        ("100000001", "DEL", "delivered", "2026-03-05T10:20:00+00:00"),
    ]
    assert [reading.discriminator for reading in said.readings] == ["REF-1", "REF-1", "REF-2"]
    assert [reading.signed_by for reading in said.readings] == ["p sample", None, "q sample"]
    assert (said.readings[0].place.facility, said.readings[0].place.city) == ("BA4", "Bradford")


@pytest.mark.parametrize("body", [b"<TrackResponse><Error><Code>9000</Code></Error></TrackResponse>", b"<Error/>"])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


def test_another_document_is_an_unknown_format() -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, b"<html/>")
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

import pytest

from events.carriers.veho import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TimePrecision
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_times_are_those_of_the_place() -> None:
    said = normalized(CARRIER, "packages.json")

    assert told(said) == [
        ("V1", "PU", "picked_up", "2026-03-02T14:30:00-08:00"),
        ("V1", "ZZ", "unmapped", "2026-03-03T00:00:00-06:00"),
        ("V2", "delivered", "delivered", "2026-03-04T09:00:00-05:00"),
    ]
    assert said.readings[1].time.precision is TimePrecision.DAY
    assert said.readings[0].estimated_delivery == "2026-03-05"


@pytest.mark.parametrize("body", [b"{}", b'{"errors": []}', b'{"trackingInfo": ""}'])
def test_answers_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

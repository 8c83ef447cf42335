import pytest

from events.carriers.smartkargo import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_every_event_has_its_own_air_waybill_and_piece() -> None:
    said = normalized(CARRIER, "events.json")

    assert told(said) == [
        ("AXB-10000001", "DDL", "delivered", "2026-03-03T23:43:17.657114+00:00"),
        ("AXB-10000002", "RCS", "picked_up", "2026-03-02T10:00:00-05:00"),
        ("AXB-10000002", "ZZZ", "unmapped", "2026-03-02T09:00:00+00:00"),
    ]
    assert [reading.piece for reading in said.readings] == ["P-1", "P-2", None]
    assert said.readings[1].time.tz_source is TzSource.EXPLICIT


def test_the_estimate_of_the_newest_event_of_a_waybill_holds() -> None:
    readings = normalized(CARRIER, "events.json").readings
    assert [reading.estimated_delivery for reading in readings] == [None, "2026-03-05T23:59:00", None]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"message": "no"}', b'{"items": []}'])
def test_answers_without_events_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b'[{"hello": 1}]'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

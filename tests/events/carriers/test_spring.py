import pytest

from events.carriers.spring import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_epoch_beside_the_wall_clock_tells_the_offset() -> None:
    said = normalized(CARRIER, "shipment.json")

    assert told(said) == [
        ("LXSAMPLE1NL", "9301", "out_for_delivery", "2026-03-02T12:00:00+02:00"),
        ("LXSAMPLE1NL", "20", "picked_up", "2026-03-02T11:00:00+00:00"),
        ("LXSAMPLE1NL", "5555", "unmapped", "2026-03-02T11:00:00+00:00"),
        ("LXSAMPLE1NL", "100", "delivered", "2026-03-02T11:00:00+01:00"),
    ]
    assert [reading.time.tz_source for reading in said.readings] == [TzSource.PAIR, TzSource.PAIR, TzSource.EXPLICIT, TzSource.LOCATION]


@pytest.mark.parametrize("body", [b"{}", b'{"ErrorLevel": 10, "Error": "not found"}', b'{"ErrorLevel": 0, "Shipment": {"Events": []}}'])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

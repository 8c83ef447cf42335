import pytest

from events.carriers.yanwen import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_yanwens_own_number_is_the_number_and_every_checkpoint_has_its_offset() -> None:
    said = normalized(CARRIER, "result.json")

    assert told(said) == [
        ("UHSAMPLEYP", "PU10", "picked_up", "2026-03-02T09:03:09+08:00"),
        ("UHSAMPLEYP", "LM40", "delivered", "2026-03-05T09:52:37+02:00"),
        ("UHSAMPLEYP", "XX99", "unmapped", "2026-03-03T09:52:37+08:00"),
    ]
    assert said.readings[0].time.printed == "2026-03-02T09:03:09 +8"


@pytest.mark.parametrize("body", [b"{}", b'{"code": 1, "message": "failed"}', b'{"code": 0, "result": []}'])
def test_answers_without_scans_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

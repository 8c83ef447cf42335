import pytest

from events.carriers.asendia import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.identity import identify
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_an_ordinal_is_an_id_together_with_the_number() -> None:
    said = normalized(CARRIER, "sync.json")

    assert told(said) == [
        ("AS0000000007CH", "PU", "picked_up", "2026-04-01T08:00:00+00:00"),
        ("AS0000000007CH", "QQ", "unmapped", "2026-04-02T08:00:00+02:00"),
    ]
    assert [identify(reading, carrier_id="asendia", digest=bytes).event_id for reading in said.readings] == [
        "1@AS0000000007CH",
        "2@AS0000000007CH",
    ]
    assert [rejection.pointer for rejection in said.rejections] == ["/trackingEvents/2", "/trackingEvents/3"]


def test_detail_events_are_read_only_where_no_milestones_are() -> None:
    said = normalized(CARRIER, "usa.json")

    assert told(said) == [
        ("RL000000001CH", "s10", "delivered", "2026-04-09T11:13:00.123450+00:00"),
        ("RL000000002CH", "s2b", "in_transit", "2026-04-01T01:00:00+00:00"),
    ]
    assert [rejection.pointer for rejection in said.rejections] == ["/data/0/trackingMilestoneEvents/1"]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"title": "Not Found", "status": 404, "detail": "-"}', b'{"data": []}'])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b"[1]"])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

import pytest

from events.carriers.australiapost import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.event import NOWHERE, EventPlace
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_whole_text_decides_and_several_articles_are_shipments_of_their_own() -> None:
    said = normalized(CARRIER, "answer.json")

    assert told(said) == [
        ("AP2", None, "delivered", "2026-02-03T09:10:00+11:00"),
        ("AP2", None, "in_transit", "2026-02-02T09:10:00+11:00"),
        ("AP2", None, "unmapped", "2026-02-01T09:10:00+11:00"),
        ("AP3A", None, "out_for_delivery", "2026-02-03T06:00:00+11:00"),
        ("AP3B", None, "info_received", "2026-11-21T12:00:00+00:00"),
    ]
    assert [rejection.pointer for rejection in said.rejections] == ["/tracking_results/1/trackable_items/0/events/3"]


def test_a_place_gives_state_or_country() -> None:
    places = [reading.place for reading in normalized(CARRIER, "answer.json").readings]
    assert places[:3] == [EventPlace(city="KEW", region="VIC", country="AU"), EventPlace(city="CHICAGO", country="US"), NOWHERE]


@pytest.mark.parametrize("body", [b"{}", b'{"errors": [{"code": "x"}]}', b'{"tracking_results": []}'])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}'])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT

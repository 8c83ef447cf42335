import orjson
import pytest

from projections.fact import Fact
from projections.fold import advance, fold
from projections.state import INITIAL, ShipmentState
from tests.projections.parcel_story import enrichment, reread, retraction, scan

DELIVERED = scan("delivered", "01 10:00", signer=b"\x01", eta="2026-03-01")
STORIES = [
    [],
    [scan("exception", "01", reason="held")],
    [DELIVERED, scan("out_for_delivery", "02 09:00")],
    [
        DELIVERED,
        enrichment(DELIVERED, name="e", eta="2026-03-02", stamp="1"),
        scan("delivery_attempted", "01 09:00"),
    ],
    [
        DELIVERED,
        reread(DELIVERED, name="r", status=None),
        retraction("02 10:00", name="x", target="absent"),
    ],
]


@pytest.mark.parametrize("story", STORIES)
def test_a_state_survives_its_row(story: list[Fact]) -> None:
    state = fold(story)
    stored = state.to_json()
    assert ShipmentState.from_json(stored) == state
    assert ShipmentState.from_json(stored).to_json() == stored


def test_a_row_of_another_format_shows_what_was_reported_and_is_folded_again() -> None:
    document = orjson.loads(fold([DELIVERED]).to_json())
    stale = ShipmentState.from_json(
        orjson.dumps({**document, "format": 4, "newest": {"unheard": "of"}, "else": 1})
    )
    assert (stale.status, stale.delivered_at, stale.delivered_event_id) == (
        "delivered",
        DELIVERED.instant,
        DELIVERED.event_id,
    )
    assert advance(stale, [scan("returning", "09 10:00")]) is None
    assert advance(stale, [enrichment(DELIVERED, name="e", signer=b"\x02")]) is None


def test_a_row_holds_no_name() -> None:
    assert set(orjson.loads(fold(STORIES[3]).to_json())) == {
        "format", "status", "since", "last_event_at", "has_time", "delivered_at", "attempts", "deliveries", "estimate", "promise",
        "scanned", "signature", "newest", "last",
    }  # fmt: skip
    assert (
        INITIAL.to_json()
        == b'{"format":5,"status":"unknown","newest":[-4611686018427387904,0,"","",""]}'
    )

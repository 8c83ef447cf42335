import orjson

from projections.fold import advance, fold
from projections.state import INITIAL, ShipmentState
from tests.projections.parcel_story import enrichment, scan

DELIVERED = scan("delivered", "01 10:00", signer=b"\x01", eta="2026-03-01")


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
    updated = enrichment(DELIVERED, name="e", eta="2026-03-02", stamp="1")
    story = [DELIVERED, updated, scan("delivery_attempted", "01 09:00")]
    assert set(orjson.loads(fold(story).to_json())) == {
        "format", "status", "since", "last_event_at", "has_time", "delivered_at", "attempts", "deliveries", "estimate", "promise",
        "scanned", "signature", "newest", "last",
    }  # fmt: skip
    assert (
        INITIAL.to_json()
        == b'{"format":5,"status":"unknown","newest":[-4611686018427387904,0,"","",""]}'
    )

"""Facts, as the log states them, and the row that holds their state."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
import pytest

from events.entry.kinds import Provenance, event_document, leaf
from events.event import Event, EventPlace, Raw
from events.identity.ids import numbered
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource
from projections.fact import FIRST_KEY, Fact, fact_from_canonical
from projections.fold import advance, fold
from projections.state import INITIAL, ShipmentState
from tests.projections.parcel_story import enrichment, retraction, scan
from tests.projections.stated_fact import fact_of


def in_order(facts: list[Fact]) -> list[Fact]:
    return sorted(facts, key=lambda fact: fact.key)


def event(occurred_at: datetime) -> Event:
    return Event(
        carrier_id="ups",
        event_id="d1-260301-abc",
        tracking_number="1Z999",
        discriminator="",
        numbered=numbered("ups", "1Z999", ""),
        kind=Kind.SCAN,
        occurred_at=occurred_at,
        occurred_at_raw="20260301 140500",
        tz_source=TzSource.LOCATION,
        time_precision=TimePrecision.SECOND,
        status=Status.EXCEPTION,
        reason=Reason.WEATHER,
        carrier_code="X/WX",
        raw=Raw(type="X", code="WX"),
        raw_zone=None,
        location=EventPlace(city="Troy", country="US"),
        estimated_delivery="2026-03-05",
        stamp="7",
    )


@pytest.mark.parametrize(
    "occurred_at",
    [
        datetime(2026, 3, 1, 14, 5, tzinfo=timezone(timedelta(hours=-5))),
        datetime(2026, 3, 1, 14, 5, 0, 123456, tzinfo=UTC),
        datetime(2026, 11, 1, 1, 30, fold=1, tzinfo=ZoneInfo("America/New_York")),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-12))),
    ],
)
def test_an_event_reads_the_same_before_and_after_the_log(occurred_at: datetime) -> None:
    appended = event(occurred_at)
    digest = bytes(range(16))
    canonical = leaf(
        event_document(
            appended,
            source=Provenance(
                message_id=UUID(int=1),
                body_commitment=bytes(32),
                received_at=datetime(2026, 3, 1, tzinfo=UTC),
                normalizer="ups",
                normalizer_version="1",
            ),
            shipment_id=UUID(int=2),
            version=3,
            recorded_at=datetime(2026, 3, 1, tzinfo=UTC),
            previous_hash=bytes(32),
            part_commitment=None,
            signer_digest=digest,
        ),
        epoch=1,
    ).canonical

    before = fact_of(appended, signer_digest=digest, version=3)
    after = fact_from_canonical(orjson.loads(canonical))

    assert after == before
    assert (after.key, after.version, after.instant.isoformat()) == (
        before.key,
        before.version,
        before.instant.isoformat(),
    )
    assert before.key > FIRST_KEY


def test_words_of_a_later_version_move_nothing() -> None:
    document = {
        "carrier_id": "acme",
        "event_id": "1",
        "kind": "promise",
        "occurred_at": "2026-03-01T08:00:00+00:00",
        "time_precision": "hour",
        "status": "teleported",
        "reason": "paradox",
        "anchor": "0",
        "estimated_delivery": "2026-03-02",
        "signer_digest": "00",
        "raw": {"code": "X1", "colour": "blue"},
    }
    fact = fact_from_canonical(document)
    assert (fact.kind, fact.precision, fact.status, fact.reason, fact.enriches) == (
        Kind.INFO,
        TimePrecision.SECOND,
        None,
        None,
        False,
    )
    before = fold([scan("in_transit", "01")])
    after = fold(
        [
            scan("in_transit", "01"),
            fact,
            fact_from_canonical({**document, "event_id": "2", "kind": "scan"}),
        ]
    )
    assert (after.status, after.estimated_delivery) == (before.status, "2026-03-02"), (
        "what is known of a scan counts, a status that is not does not"
    )


def test_a_day_begins_with_what_comes_before_delivery_and_ends_with_the_rest() -> None:
    story = [
        scan("info_received", "02"),
        scan("picked_up", "02"),
        scan("in_transit", "02"),
        scan("in_transit", "02 00:01"),
        scan("out_for_delivery", "02 23:59"),
        scan("exception", "02"),
        scan("delivered", "02"),
        scan("info_received", "03 00:00"),
    ]
    assert in_order(story[::-1]) == story


def test_the_day_is_the_carriers_own() -> None:
    assert scan("picked_up", "02").key[0] == scan("picked_up", "02 00:00").key[0]


@pytest.mark.parametrize("when", ["02", "02 10:00"])
@pytest.mark.parametrize("status", [status.value for status in Status])
def test_an_enrichment_sorts_after_its_anchor_and_a_correction_after_both(
    status: str, when: str
) -> None:
    anchor = scan(status, when, name="z")
    later = enrichment(anchor, name="a", eta="2026-03-04")
    assert anchor.key < later.key < retraction(when, name="0").key


def test_enrichments_sort_by_stamp_then_value() -> None:
    anchor = scan("in_transit", "02 10:00")
    story = [
        enrichment(anchor, name="d", eta="2026-03-05"),
        enrichment(anchor, name="c", eta="2026-03-06"),
        enrichment(anchor, name="b", eta="2026-03-04", stamp="1"),
        enrichment(anchor, name="a", signer=b"\x01", stamp="2"),
    ]
    assert in_order(story[::-1]) == story


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

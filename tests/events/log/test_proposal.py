from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from events.entry import Provenance
from events.event import NOWHERE, Event, Personal, Raw
from events.log.proposal import Conflict, Enrichment, Key, Known, Proposal, decide
from events.vocabulary import Kind, Status, TimePrecision, TzSource, Verdict

MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOURCE = Provenance(message_id=UUID(int=9), body_commitment=bytes(32), received_at=MOMENT, normalizer="ups", normalizer_version="1")


def proposal(event_id: str, *, facts: bytes = b"f", shipment: int = 1, message: int = 0, signer: str | None = None) -> Proposal:
    event = Event(
        carrier_id="ups",
        event_id=event_id,
        tracking_number="1Z",
        discriminator="",
        kind=Kind.SCAN,
        occurred_at=MOMENT,
        occurred_at_raw="20260301 120000",
        tz_source=TzSource.EXPLICIT,
        time_precision=TimePrecision.SECOND,
        status=Status.DELIVERED,
        reason=None,
        carrier_code="D/FS",
        raw=Raw(type="D", code="FS"),
        raw_zone=None,
        location=NOWHERE,
        personal=Personal(description="Delivered", signed_by=signer),
    )
    return Proposal(
        event=event,
        shipment_id=UUID(int=shipment),
        number="1Z",
        facts_digest=facts,
        signer_digest=None if signer is None else signer.encode(),
        source=SOURCE,
        message=message,
        enrichments=() if signer is None else (Enrichment(event_id=f"e1-{event_id}-{signer}", field="signed_by"),),
    )


def test_an_unknown_event_is_appended_and_a_repetition_in_the_same_batch_is_a_duplicate() -> None:
    decision = decide([proposal("a"), proposal("a", message=1)], {})
    assert decision.verdicts == [Verdict.APPENDED, Verdict.DUPLICATE]
    assert [p.event.event_id for p in decision.appends] == ["a"]


def test_other_facts_under_the_same_id_are_a_conflict_with_the_holder() -> None:
    other = proposal("a", facts=b"g", shipment=2)
    decision = decide([other], {("ups", "a"): Known(UUID(int=1), b"f")})
    assert decision.verdicts == [Verdict.CONFLICT]
    assert decision.conflicts == [Conflict(other, UUID(int=1))]
    assert decision.appends == []


def test_a_signer_that_comes_later_is_an_info_event_anchored_to_its_scan() -> None:
    decision = decide([proposal("a", signer="EVANS")], {("ups", "a"): Known(UUID(int=1), b"f")})
    assert decision.verdicts == [Verdict.DUPLICATE]
    (info,) = decision.appends
    assert (info.event.kind, info.event.anchor, info.event.status) == (Kind.INFO, "a", None)
    assert info.event.personal == Personal(signed_by="EVANS")


def test_a_signer_that_its_scan_carried_is_not_appended_twice() -> None:
    first = decide([proposal("a", signer="EVANS")], {})
    assert [key for key, _ in first.reserved] == [("ups", "e1-a-EVANS")]
    again = decide([proposal("a", signer="EVANS")], _log(first.appends, first.reserved))
    assert again.appends == []


pushes = st.lists(
    st.builds(
        proposal,
        st.sampled_from("abc"),
        signer=st.none() | st.sampled_from(["X", "Y"]),
        message=st.just(0),
    ),
    max_size=8,
)


@given(st.lists(pushes, max_size=6))
def test_batches_end_in_the_same_log_as_one_batch(batches: list[list[Proposal]]) -> None:
    """Also: nothing is appended twice, however the pushes are cut into batches."""
    known: dict[Key, Known] = {}
    appended: list[Key] = []
    for batch in batches:
        decision = decide(batch, known)
        known |= _log(decision.appends, decision.reserved)
        appended += [p.key for p in decision.appends]
    at_once = decide([p for batch in batches for p in batch], {})
    assert appended == [p.key for p in at_once.appends]
    assert len(set(appended)) == len(appended)


def _log(appends: Sequence[Proposal], reserved: Sequence[tuple[Key, Proposal]]) -> dict[Key, Known]:
    rows = [(p.key, p) for p in appends] + list(reserved)
    return {key: Known(p.shipment_id, p.facts_digest) for key, p in rows}

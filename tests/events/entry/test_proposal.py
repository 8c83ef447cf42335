from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from events.entry.kinds import Provenance
from events.entry.proposal import (
    Conflict,
    Decision,
    DedupeKey,
    ExistingEvent,
    Proposal,
    decide,
    keys_of,
    without_personal,
)
from events.event import NOWHERE, Enrichment, Event, Numbered, Personal, Raw
from events.identity.ids import enrichment_id
from events.vocabulary import Kind, Status, TimePrecision, TzSource, Verdict

MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOURCE = Provenance(
    message_id=UUID(int=9),
    body_commitment=bytes(32),
    received_at=MOMENT,
    normalizer="ups",
    normalizer_version="1",
)
CORE, OTHER_CORE = b"c" * 8, b"C" * 8
UNSTATED = bytes(8)


def facts(core: bytes = CORE, time: bytes = b"t" * 8, place: bytes = b"p" * 16) -> bytes:
    return b"\x01" + core + time + place


def proposal(
    event_id: str,
    *aliases: str,
    stated: bytes = b"",
    shipment: int = 1,
    message: int = 0,
    signer: str | None = None,
) -> Proposal:
    event = Event(
        carrier_id="ups",
        event_id=event_id,
        aliases=aliases,
        tracking_number="1Z",
        discriminator="",
        numbered=Numbered("1Z", "1Z", UUID(int=shipment)),
        facts_digest=stated,
        enrichments=() if signer is None else (signed_by(signer, event_id, *aliases),),
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
        signer_digest=None if signer is None else signer.encode(),
        source=SOURCE,
        message=message,
    )


def signed_by(signer: str, *event_ids: str) -> Enrichment:
    value = signer.encode().ljust(32)
    return Enrichment(
        field="signed_by",
        digest=value,
        event_ids=tuple(enrichment_id(anchor=each, value=value) for each in event_ids),
    )


def log_of(decision: Decision) -> dict[DedupeKey, ExistingEvent]:
    """Return the dedupe keys that a decision takes."""
    return dict([*keys_of(decision.appends), *decision.aliases])


def ids(decision: Decision) -> list[str]:
    return [appended.event.event_id for appended in decision.appends]


def test_an_unknown_event_is_appended_and_a_repetition_in_the_same_batch_is_a_duplicate() -> None:
    decision = decide([proposal("a"), proposal("a", message=1)], {})
    assert decision.verdicts == [Verdict.APPENDED, Verdict.DUPLICATE]
    assert ids(decision) == ["a"]


def test_other_facts_under_the_same_id_are_a_conflict_with_the_holder() -> None:
    other = proposal("a", stated=facts(OTHER_CORE), shipment=2)
    decision = decide([other], {("ups", "a"): ExistingEvent(UUID(int=1), facts())})
    assert decision.verdicts == [Verdict.CONFLICT]
    assert decision.conflicts == [Conflict(other, UUID(int=1))]
    assert decision.appends == []


def test_a_part_that_is_not_stated_matches_anything_and_a_stated_one_that_differs_is_a_conflict() -> (
    None
):
    held = {("ups", "a"): ExistingEvent(UUID(int=1), facts(place=b"p" * 4 + bytes(12)))}
    assert decide([proposal("a", stated=facts())], held).verdicts == [Verdict.DUPLICATE]
    assert decide([proposal("a", stated=facts(time=UNSTATED))], held).verdicts == [
        Verdict.DUPLICATE
    ]
    assert decide([proposal("a", stated=facts(time=b"T" * 8))], held).verdicts == [Verdict.CONFLICT]


def test_facts_of_another_format_and_those_of_derived_ids_contradict_nothing() -> None:
    held = {("ups", "a"): ExistingEvent(UUID(int=1), facts())}
    for stated in (b"", b"\x02" + facts(OTHER_CORE)[1:]):
        assert decide([proposal("a", stated=stated)], held).verdicts == [Verdict.DUPLICATE]


def test_a_signer_that_comes_later_is_an_info_event_anchored_to_its_scan() -> None:
    decision = decide(
        [proposal("a", signer="EVANS")], {("ups", "a"): ExistingEvent(UUID(int=1), b"")}
    )
    assert decision.verdicts == [Verdict.DUPLICATE]
    (info,) = decision.appends
    assert (info.event.kind, info.event.anchor, info.event.status) == (Kind.INFO, "a", None)
    assert info.event.personal == Personal(signed_by="EVANS")


def test_a_service_is_no_fact_and_no_enrichment() -> None:
    said = ((proposal("a"), "UPS Ground"), (proposal("a", signer="EVANS"), "GROUND"))
    decision = decide(
        [replace(one, event=replace(one.event, service=service)) for one, service in said], {}
    )
    assert decision.verdicts == [Verdict.APPENDED, Verdict.DUPLICATE]
    assert [appended.event.service for appended in decision.appends] == ["UPS Ground", None]


def test_a_signer_that_its_scan_carried_is_not_appended_twice_and_has_no_dedupe_key_of_its_own() -> (
    None
):
    first = decide([proposal("a", signer="EVANS")], {})
    known = log_of(first)
    assert list(known) == [("ups", "a")]
    assert known["ups", "a"].attribute_digests == b"EVANS   "
    assert decide([proposal("a", signer="EVANS")], known).appends == []
    assert len(decide([proposal("a", signer="MAIER")], known).appends) == 1


def test_whichever_id_is_known_makes_a_duplicate_and_all_of_them_become_known() -> None:
    known = log_of(decide([proposal("a", "x")], {}))
    assert known["ups", "x"].alias_of == "a"
    second = decide([proposal("b", "x")], known)
    assert second.verdicts == [Verdict.DUPLICATE]
    assert second.aliases == [(("ups", "b"), ExistingEvent(UUID(int=1), b"", b"", "a"))]
    third = decide([proposal("c", "b")], known | log_of(second))
    assert (third.verdicts, ids(third)) == ([Verdict.DUPLICATE], [])
    assert [known.alias_of for _, known in third.aliases] == ["a"]


def test_what_a_scan_carried_and_what_came_later_is_known_under_its_aliases_too() -> None:
    first = decide([proposal("a", "x", signer="EVANS")], {})
    known = log_of(first)
    assert decide([proposal("b", "x", signer="EVANS")], known).appends == []
    later = decide([proposal("a", "x", signer="MAIER")], known)
    assert [info.event.anchor for info in later.appends] == ["a"]
    known |= log_of(later)
    again = decide([proposal("b", "x", signer="MAIER")], known)
    assert again.appends == []


def test_an_enrichment_under_an_alias_is_anchored_to_the_event_that_the_log_has() -> None:
    known = log_of(decide([proposal("a", "x")], {}))
    (info,) = decide([proposal("b", "x", signer="EVANS")], known).appends
    assert info.event.anchor == "a"


pushes = st.lists(
    st.builds(
        lambda ids, signer: proposal(*ids, signer=signer),
        st.sampled_from([("a",), ("b",), ("c", "x"), ("d", "x"), ("x",), ("e", "d")]),
        signer=st.none() | st.sampled_from(["X", "Y"]),
    ),
    max_size=8,
)


@given(st.lists(pushes, max_size=6))
def test_batches_end_in_the_same_log_as_one_batch(batches: list[list[Proposal]]) -> None:
    """Append nothing twice, however the pushes are cut into batches."""
    known: dict[DedupeKey, ExistingEvent] = {}
    appended: list[str] = []
    for batch in batches:
        asked = {key for one in batch for key in one.dedupe_keys()}
        decision = decide(batch, {key: held for key, held in known.items() if key in asked})
        assert not (log_of(decision).keys() & known.keys()), "a key is taken once"
        known |= log_of(decision)
        appended += ids(decision)
    at_once = decide([p for batch in batches for p in batch], {})
    assert appended == ids(at_once)
    assert len(set(appended)) == len(appended)


def test_nothing_of_a_signer_is_left_for_an_erased_shipment() -> None:
    erased = without_personal(proposal("d1-1", signer="MILLER"))
    assert erased.signer_digest is None
    assert not erased.event.personal
    assert [
        enrichment.field for enrichment in erased.enrichments if "sign" in enrichment.field
    ] == []

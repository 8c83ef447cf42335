"""Properties of the fold for any set of events."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.vocabulary import Kind, Reason, Status, TimePrecision
from projections.fact import Fact
from projections.fold import advance, fold
from projections.state import INITIAL, ShipmentState
from tests.projections.parcel_story import enrichment, scan

NAMES = [f"d1-{letter}" for letter in "abcdefgh"]
OWN = [f"c1-{letter}" for letter in "abcd"]
START = datetime(2026, 3, 1, 22, tzinfo=UTC)
INSTANTS = [
    (START + timedelta(hours=hours)).astimezone(timezone(timedelta(hours=offset)))
    for hours in range(0, 9, 2)
    for offset in (-5, 0, 3)
]
DIGESTS = [None, b"\x01", b"\x02"]
ETAS = [None, None, "2026-03-05", "2026-03-06"]
TIMES = st.fixed_dictionaries(
    {
        "instant": st.sampled_from(INSTANTS),
        "precision": st.sampled_from([TimePrecision.SECOND, TimePrecision.DAY]),
        "is_timed": st.sampled_from([True, True, False]),
    }
)
VALUES = st.fixed_dictionaries(
    {
        "signer_digest": st.sampled_from(DIGESTS),
        "estimated_delivery": st.sampled_from(ETAS),
        "stamp": st.sampled_from(["", "1"]),
        "country": st.sampled_from([None, "US", "CA"]),
        "service": st.sampled_from([None, "UPS Ground", "UPS SurePost"]),
    }
)
STATUSES = st.sampled_from([status for status in Status if status is not Status.UNKNOWN])


@st.composite
def stories(draw: st.DrawFn, *, corrections: bool = True) -> list[Fact]:
    """Draw up to a dozen facts about one parcel in a few instants, so that ties, chains and
    missing targets are common.
    """
    facts = {}
    for number in range(draw(st.integers(1, 12))):
        kinds = [
            "scan",
            "scan",
            "scan",
            "info",
            "unmapped",
            "enrichment",
            *(["correction", "own"] if corrections else []),
        ]
        shape = draw(st.sampled_from(kinds))
        values: dict[str, Any] = draw(TIMES) | draw(VALUES)
        target = draw(st.sampled_from(NAMES))
        name = draw(st.sampled_from(NAMES))
        status: Status | None = None
        match shape:
            case "scan":
                status = draw(STATUSES)
                fact = Fact(
                    event_id=name,
                    kind=Kind.SCAN,
                    status=status,
                    reason=draw(st.sampled_from([None, *Reason])),
                    **values,
                )
            case "enrichment":
                fact = Fact(event_id=f"e1-{number}", kind=Kind.INFO, anchor=target, **values)
            case "correction":
                names = draw(st.sampled_from([None, target]))
                fact = Fact(
                    event_id=name,
                    kind=Kind.CORRECTION,
                    status=draw(st.none() | STATUSES),
                    corrects=names,
                    **values,
                )
            case "own":
                replaced = draw(st.none() | st.sampled_from(OWN))
                status = draw(st.none() | STATUSES)
                own = draw(st.sampled_from(OWN))
                fact = Fact(
                    event_id=own,
                    kind=Kind.CORRECTION,
                    status=status,
                    corrects=target,
                    anchor=replaced,
                    **values,
                )
            case _:
                fact = Fact(event_id=name, kind=Kind(shape), **values)
        facts[fact.event_id] = fact
    return list(facts.values())


def check_advance(messages: Iterable[Sequence[Fact]]) -> int:
    """Return the number of messages that needed no second reading of the log."""
    state, log, advanced = INITIAL, list[Fact](), 0
    for message in messages:
        after = advance(state, message)
        log += message
        state = fold(log)
        if after is not None:
            advanced += 1
            assert after == state
            assert after.to_json() == state.to_json()
    return advanced


def messages_of(story: Sequence[Fact], cuts: Sequence[bool]) -> list[list[Fact]]:
    messages: list[list[Fact]] = [[]]
    for fact, cut in zip(story, cuts, strict=False):
        if cut:
            messages.append([])
        messages[-1].append(fact)
    return messages


@pytest.mark.slow
@given(story=stories(), seed=st.randoms(use_true_random=False))
def test_any_order_of_arrival_gives_the_same_state(story: list[Fact], seed: Random) -> None:
    for _ in range(4):
        arrival = fold(seed.sample(story, len(story)))
        assert arrival == fold(story)
        assert arrival.to_json() == fold(story).to_json()


@given(story=stories())
def test_an_event_that_comes_twice_counts_once(story: list[Fact]) -> None:
    assert fold([*story, *story]) == fold(story)


@pytest.mark.slow
@given(
    story=stories(), cuts=st.lists(st.booleans(), min_size=12, max_size=12), ordered=st.booleans()
)
def test_advance_answers_as_fold_does(story: list[Fact], cuts: list[bool], ordered: bool) -> None:  # noqa: FBT001
    arrival = sorted(story, key=lambda fact: fact.key) if ordered else story
    check_advance(messages_of(arrival, cuts))


@given(story=stories(corrections=False), repeats=st.lists(st.integers(0, 11), max_size=6))
def test_advance_answers_as_fold_does_when_events_repeat(
    story: list[Fact], repeats: list[int]
) -> None:
    check_advance([[fact] for fact in [*story, *(story[index % len(story)] for index in repeats)]])


@given(story=stories(corrections=False), cuts=st.lists(st.booleans(), min_size=12, max_size=12))
def test_scans_in_their_own_order_never_need_the_log(story: list[Fact], cuts: list[bool]) -> None:
    scans = sorted(
        (fact for fact in story if not fact.enriches and not fact.names_signer),
        key=lambda fact: fact.key,
    )
    messages = messages_of(scans, cuts)
    assert check_advance(messages) == len(messages)


@given(story=stories())
def test_a_state_is_made_of_its_events(story: list[Fact]) -> None:
    state = fold(story)
    ids = {fact.event_id for fact in story}
    assert {state.delivered_event_id, state.signed_by_event_id} <= {None, *ids}
    timed = [fact.instant for fact in story if fact.is_timed]
    assert state.last_event_at == max(timed or [fact.instant for fact in story])
    assert {state.status_since, state.delivered_at} <= {None, *timed}
    assert (state.status is Status.UNKNOWN) <= (state.status_since is None)
    assert ShipmentState.from_json(state.to_json()) == state


STORY = [
    scan("in_transit", "01 10:00"),
    scan("delivery_attempted", "02 10:00"),
    scan("out_for_delivery", "03 08:00"),
    scan("delivered", "03 10:00"),
]


def test_an_enrichment_of_the_newest_scan_needs_no_log() -> None:
    newest = STORY[0]
    moving = [enrichment(newest, name=str(day), eta=f"2026-03-{day:02}") for day in (9, 4, 7)]
    assert check_advance([[fact] for fact in [newest, *moving]]) == 4
    delivered = STORY[3]
    signed = enrichment(delivered, name="s", signer=b"\x01")
    assert check_advance([[delivered], [scan("exception", "04 10:00")], [signed]]) == 3


def test_enrichments_of_an_event_that_never_came_need_the_log() -> None:
    absent = scan("in_transit", "01 10:00")
    orphans = [
        enrichment(replace(absent, instant=when), name=str(when), eta="2026-03-05")
        for when in INSTANTS[:2]
    ]
    assert check_advance([[orphan] for orphan in orphans]) == 0


def test_a_signer_settles_which_words_of_a_delivery_are_remembered() -> None:
    first, second, third = (scan("delivered", f"03 {hour}:00") for hour in (10, 11, 12))
    signed = enrichment(second, name="s", signer=b"\x01")
    assert check_advance([[first], [second], [signed], [third]]) == 4

"""Deadlines in the carrier's local time, and what takes their cause away."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from events.vocabulary import Kind
from projections.expectations import (
    DEFAULT_RULES,
    FIRST_SEQUENCE,
    Deadline,
    Expectation,
    ExpectationRules,
    deadlines,
    flagged,
    next_deadline,
    passed,
)
from projections.fact import Fact
from projections.fold import fold
from projections.state import ShipmentState
from tests.projections.parcel_story import at, note, retraction, scan

RECORDED = at("01 00:00")


def due(*facts: Fact, rules: ExpectationRules = DEFAULT_RULES) -> dict[str, datetime]:
    return {one.kind.value: one.due_at for one in deadlines(fold(facts), rules)}


def observed(state: ShipmentState, now: datetime) -> ShipmentState:
    return passed(state, DEFAULT_RULES, recorded_at=RECORDED, now=now).state


MOVING = scan("in_transit", "01 10:00")
PROMISED = scan("picked_up", "01 10:00", eta="2026-03-03")
AFTER = scan("in_transit", "02 10:00", eta="2026-03-09")
STRICT = DEFAULT_RULES.changed(
    {"stalled": {"in_transit": 24, "exception": None}, "overdue": None}, revision=3
)


@pytest.mark.parametrize(
    ("facts", "expected", "rules"),
    [
        ([MOVING], {"stalled": at("06 10:00")}, DEFAULT_RULES),
        ([scan("picked_up", "01 10:00")], {"stalled": at("04 10:00")}, DEFAULT_RULES),
        ([MOVING, note("02 10:00", name="n")], {"stalled": at("06 10:00")}, DEFAULT_RULES),
        (
            [MOVING, note("02 10:00", name="n", kind=Kind.UNMAPPED)],
            {"stalled": at("07 10:00")},
            DEFAULT_RULES,
        ),
        (
            [scan("info_received", "01 10:00"), scan("info_received", "03 10:00")],
            {"not_picked_up": at("06 10:00")},
            DEFAULT_RULES,
        ),
        ([note("01 10:00", name="n")], {}, DEFAULT_RULES),
        (
            [PROMISED, AFTER],
            {"overdue": datetime(2026, 3, 4, 5, tzinfo=UTC), "stalled": at("07 10:00")},
            DEFAULT_RULES,
        ),
        (
            [PROMISED, replace(AFTER, instant=datetime.fromisoformat("2026-03-02T10:00:00+01:00"))],
            {
                "overdue": datetime(2026, 3, 3, 23, tzinfo=UTC),
                "stalled": datetime(2026, 3, 7, 9, tzinfo=UTC),
            },
            DEFAULT_RULES,
        ),
        (
            [replace(PROMISED, estimated_delivery="2026-03-03T12:00:00+09:00")],
            {"overdue": at("04 00:00"), "stalled": at("04 10:00")},
            DEFAULT_RULES,
        ),
        (
            [scan("out_for_delivery", "01 08:00"), scan("out_for_delivery", "02 23:59")],
            {"delivery_missed": at("03 00:00"), "stalled": at("04 23:59")},
            DEFAULT_RULES,
        ),
        (
            [scan("available_for_pickup", "01 08:00"), scan("available_for_pickup", "04 08:00")],
            {"pickup_expiring": at("06 08:00")},
            DEFAULT_RULES,
        ),
        (
            [scan("in_transit", "01 10:00", eta="2026-03-03")],
            {"stalled": at("02 10:00")},
            STRICT,
        ),
        ([scan("exception", "01 10:00")], {}, STRICT),
        ([scan("picked_up", "01 10:00")], {"stalled": at("04 10:00")}, STRICT),
    ],
    ids=[
        "stalled after its last scan",
        "by its status",
        "a note is no scan",
        "a code that nobody knows is",
        "a label that never becomes a parcel",
        "no scan at all",
        "the promise is the first estimate, to midnight",
        "where the parcel is",
        "of the day that is stated",
        "out for delivery ends with the day of the last scan",
        "a pickup expires from when it was available",
        "rules change hours",
        "and switch off",
        "and leave the rest",
    ],
)
def test_what_is_expected_when(
    facts: list[Fact], expected: dict[str, datetime], rules: ExpectationRules
) -> None:
    assert due(*facts, rules=rules) == expected


@pytest.mark.parametrize("eta", ["soon", "2026-02-30", "0001-01-01", "9999-12-31", ""])
def test_an_estimate_that_is_no_usable_date_promises_nothing(eta: str) -> None:
    assert due(scan("picked_up", "01 10:00", eta=eta)) == {"stalled": at("04 10:00")}


@pytest.mark.parametrize("status", ["delivered", "returned", "cancelled", "lost", "destroyed"])
def test_nothing_is_expected_of_a_finished_shipment(status: str) -> None:
    assert due(scan("info_received", "01 08:00", eta="2026-03-02"), scan(status, "01 10:00")) == {}


def test_an_expectation_is_observed_once_for_its_cause_and_its_flag_goes_and_comes_with_it() -> (
    None
):
    first = scan("in_transit", "01 10:00")
    state = fold([first])
    assert flagged(observed(state, at("06 09:59"))) == []
    stalled = observed(state, at("06 10:00"))
    assert (flagged(stalled), stalled.observed) == (["stalled"], (("stalled", first.event_id),))
    assert observed(stalled, at("30 00:00")) == stalled
    moved = replace(fold([first, scan("in_transit", "07 10:00")]), observed=stalled.observed)
    assert flagged(moved) == []
    again = observed(moved, at("20 00:00"))
    assert flagged(again) == ["stalled"]
    back = replace(
        fold([first, scan("in_transit", "07 10:00"), retraction("08 10:00", name="r")]),
        observed=again.observed,
    )
    assert flagged(back) == ["stalled"]
    assert next_deadline(back, DEFAULT_RULES, recorded_at=RECORDED) is None


def test_observations_are_numbered_through() -> None:
    state = fold([scan("out_for_delivery", "01 10:00", eta="2026-03-01")])
    found = passed(state, DEFAULT_RULES, recorded_at=RECORDED, now=at("03 00:00"))
    assert [one.kind for one in found.deadlines] == [
        Expectation.DELIVERY_MISSED,
        Expectation.OVERDUE,
    ]
    assert found.sequences == [FIRST_SEQUENCE + 1, FIRST_SEQUENCE + 2]
    later = passed(found.state, DEFAULT_RULES, recorded_at=RECORDED, now=at("30 00:00"))
    assert [
        (one.kind, place) for one, place in zip(later.deadlines, later.sequences, strict=True)
    ] == [(Expectation.STALLED, FIRST_SEQUENCE + 3)]


def test_a_history_that_is_loaded_is_no_news() -> None:
    state = fold([scan("in_transit", "01 10:00")])
    long_after = at("06 10:00") + timedelta(days=30)
    assert isinstance(next_deadline(state, DEFAULT_RULES, recorded_at=long_after), Deadline)
    assert (
        next_deadline(state, DEFAULT_RULES, recorded_at=long_after + timedelta(seconds=1)) is None
    )
    assert (
        passed(
            state, DEFAULT_RULES, recorded_at=long_after + timedelta(seconds=1), now=long_after
        ).deadlines
        == []
    )


@pytest.mark.parametrize("year", [1, 1969, 9000, 9999])
def test_times_at_the_edge_of_the_calendar_are_no_deadlines(year: int) -> None:
    fact = replace(
        scan("out_for_delivery", "01 10:00"), instant=datetime(year, 12, 31, 23, 59, tzinfo=UTC)
    )
    assert due(fact) == {}

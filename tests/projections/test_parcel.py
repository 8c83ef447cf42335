"""Changes of several sources that are told of one parcel."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.vocabulary import Status
from projections.lifecycle import TERMINAL
from projections.parcel import ParcelProgress, ParcelSource, SourceChange, notified_changes

MORNING = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
UPS = ParcelSource(UUID(int=1), "ups", "1Z1")
AFTERSHIP = ParcelSource(UUID(int=2), "aftership", "1Z1")
SHIPPO = ParcelSource(UUID(int=3), "shippo", "1Z1")
SOURCES = (UPS, AFTERSHIP, SHIPPO)
JOURNEY = (
    "info_received",
    "picked_up",
    "in_transit",
    "exception",
    "in_transit",
    "out_for_delivery",
    "delivered",
)


def tell(*said: tuple[ParcelSource, str]) -> list[str]:
    """Return what is told when the sources take these statuses one after the other."""
    return [change.to_status for change in notified_changes(changes(said))]


def changes(said: Iterable[tuple[ParcelSource, str]]) -> list[SourceChange]:
    at: dict[ParcelSource, str] = defaultdict(lambda: "unknown")
    found = []
    for sequence, (source, status) in enumerate(said, 1):
        if at[source] != status:
            found.append(
                SourceChange(
                    source, sequence, at[source], status, MORNING + timedelta(minutes=sequence)
                )
            )
            at[source] = status
    return found


def interleaved(
    random: Random, journeys: Sequence[tuple[ParcelSource, Sequence[str]]]
) -> list[tuple[ParcelSource, str]]:
    waiting = {source: list(journey) for source, journey in journeys}
    said = []
    while waiting:
        source = random.choice(sorted(waiting))
        said.append((source, waiting[source].pop(0)))
        waiting = {each: left for each, left in waiting.items() if left}
    return said


statuses = st.sampled_from([status.value for status in Status if status is not Status.UNKNOWN])


@given(st.lists(statuses))
def test_everything_that_a_parcels_only_source_says_is_told(journey: list[str]) -> None:
    said = changes((UPS, status) for status in journey)
    assert list(notified_changes(said)) == said


@given(st.randoms(use_true_random=False))
def test_sources_that_say_the_same_are_told_once_in_any_interleaving(random: Any) -> None:
    assert tell(*interleaved(random, [(source, JOURNEY) for source in SOURCES])) == list(JOURNEY)


@given(
    st.randoms(use_true_random=False), st.lists(st.sets(st.integers(0, 4)), min_size=3, max_size=3)
)
def test_sources_that_leave_steps_out_never_tell_one_twice_nor_go_back(
    random: Any, left_out: list[set[int]]
) -> None:
    steps = (
        "info_received",
        "picked_up",
        "in_transit",
        "available_for_pickup",
        "out_for_delivery",
        "delivered",
    )
    journeys = [
        [step for at, step in enumerate(steps) if at not in skipped] for skipped in left_out
    ]
    told = tell(*interleaved(random, list(zip(SOURCES, journeys, strict=True))))
    assert all(steps.index(before) < steps.index(after) for before, after in pairwise(told))
    assert told[-1] == "delivered"


@given(
    st.randoms(use_true_random=False),
    st.lists(st.lists(statuses, max_size=8), min_size=3, max_size=3),
)
def test_the_parcel_is_where_what_was_told_last_says(
    random: Any, journeys: list[list[str]]
) -> None:
    said = changes(
        interleaved(
            random,
            [
                (source, journey)
                for source, journey in zip(SOURCES, journeys, strict=True)
                if journey
            ],
        )
    )
    progress = ParcelProgress()
    told = [change for change in said if progress.notifies(change)]
    assert progress.status == (told[-1].to_status if told else "unknown")
    assert progress.reported_by == (told[-1].source.shipment_id if told else None)
    # no status is told while the parcel has it
    assert all(
        before.to_status != after.to_status or before.to_status in TERMINAL
        for before, after in pairwise(told)
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(
            [
                (UPS, "in_transit"),
                (UPS, "delivered"),
                (AFTERSHIP, "out_for_delivery"),
                (AFTERSHIP, "exception"),
            ],
            ["in_transit", "delivered"],
            id="what comes late is not told after the end",
        ),
        pytest.param(
            [
                (source, status)
                for status in ("in_transit", "exception", "in_transit", "exception", "in_transit")
                for source in (UPS, SHIPPO)
            ],
            ["in_transit", "exception", "in_transit", "exception", "in_transit"],
            id="an exception that comes back is told again",
        ),
        pytest.param(
            [
                (SHIPPO, "in_transit"),
                (UPS, "in_transit"),
                (UPS, "exception"),
                (UPS, "in_transit"),
                (SHIPPO, "exception"),
                (SHIPPO, "in_transit"),
                (SHIPPO, "delivered"),
            ],
            ["in_transit", "exception", "in_transit", "delivered"],
            id="a source that lags behind at the same status tells nothing twice",
        ),
        pytest.param(
            [
                (UPS, "exception"),
                (UPS, "in_transit"),
                (UPS, "exception"),
                (UPS, "in_transit"),
                (UPS, "out_for_delivery"),
                (SHIPPO, "in_transit"),
                (SHIPPO, "out_for_delivery"),
                (SHIPPO, "exception"),
                (SHIPPO, "delivered"),
            ],
            [
                "exception",
                "in_transit",
                "exception",
                "in_transit",
                "out_for_delivery",
                "exception",
                "delivered",
            ],
            id="a source that saw fewer turns goes on where another falls silent",
        ),
        pytest.param(
            [
                (UPS, "delivered"),
                (AFTERSHIP, "delivered"),
                (UPS, "delivery_attempted"),
                (AFTERSHIP, "delivery_attempted"),
            ],
            ["delivered", "delivery_attempted"],
            id="a correction of what was told is told",
        ),
        pytest.param(
            [
                (UPS, "delivered"),
                (AFTERSHIP, "delivered"),
                (AFTERSHIP, "in_transit"),
                (UPS, "in_transit"),
                (AFTERSHIP, "delivered"),
                (UPS, "delivered"),
            ],
            ["delivered", "in_transit", "delivered"],
            id="a delivery that was taken back is told again once",
        ),
        pytest.param(
            [(UPS, "in_transit"), (UPS, "delivered"), (AFTERSHIP, "delivered")],
            ["in_transit", "delivered"],
            id="a source that comes late with the whole history tells nothing",
        ),
        pytest.param(
            [(UPS, "teleported")], ["teleported"], id="a status of a later version is told"
        ),
    ],
)
def test_what_is_told_of_a_parcel(said: list[tuple[ParcelSource, str]], told: list[str]) -> None:
    assert tell(*said) == told


def test_a_source_that_is_at_another_turn_of_the_same_status_tells_nothing_twice() -> None:
    # it is where the parcel is only by its word: what it says next happened before
    first, third = MORNING, MORNING + timedelta(hours=2)
    said = [
        SourceChange(SHIPPO, 1, "unknown", "exception", MORNING + timedelta(hours=1)),
        SourceChange(SHIPPO, 2, "exception", "in_transit", third),
        SourceChange(UPS, 1, "unknown", "in_transit", first),
        SourceChange(UPS, 2, "in_transit", "exception", MORNING + timedelta(hours=1)),
        SourceChange(UPS, 3, "exception", "in_transit", third),
    ]
    assert [(change.source, change.to_status) for change in notified_changes(said)] == [
        (SHIPPO, "exception"),
        (SHIPPO, "in_transit"),
    ]


@pytest.mark.parametrize("first", [UPS, AFTERSHIP])
def test_a_number_that_is_used_again_begins_anew(first: ParcelSource) -> None:
    again = {
        source: source._replace(shipment_id=UUID(int=source.shipment_id.int + 10))
        for source in (UPS, AFTERSHIP)
    }
    second = AFTERSHIP if first is UPS else UPS
    once = [
        (UPS, "in_transit"),
        (AFTERSHIP, "in_transit"),
        (UPS, "delivered"),
        (AFTERSHIP, "delivered"),
    ]
    twice = [
        (again[first], "in_transit"),
        (again[second], "in_transit"),
        (again[second], "delivered"),
        (again[first], "delivered"),
    ]
    assert tell(*once, *twice) == ["in_transit", "delivered", "in_transit", "delivered"]

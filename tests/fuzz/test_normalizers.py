from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any, Final

import pytest

from events.carriers import CARRIERS
from events.errors import Cause, UnreadableMessageError
from events.event import Normalized, Raw, Reading
from events.parsing.times import received
from events.vocabulary import Kind, Status
from tests.fuzz.examine import RECEIVED_AT, examine
from tests.fuzz.mutate import amplified, mutated
from tests.fuzz.seeds import fixtures

MUTATIONS: Final = 50
"""The first of those that `make fuzz` tries for a minute."""
WEIGHED: Final = 5
LARGE_BYTES: Final = 100_000

SOUND: Final = Reading(
    tracking_number="1",
    kind=Kind.SCAN,
    status=Status.DELIVERED,
    raw=Raw(code="D"),
    time=received(RECEIVED_AT),
)


@pytest.mark.parametrize("carrier_id", CARRIERS)
def test_a_mutated_body_is_read_or_refused_as_declared(carrier_id: str) -> None:
    bodies = fixtures(carrier_id)
    assert bodies, f"{carrier_id} has no fixtures"
    for number in range(MUTATIONS):
        body = mutated(bodies, Random(f"{carrier_id} {number}"))
        try:
            examine(CARRIERS[carrier_id], body, weigh=number < WEIGHED)
        except Exception as error:
            error.add_note(
                f"mutation {number} of {carrier_id}: python -m tests.fuzz {carrier_id} --only"
                f" {number}"
            )
            raise


@pytest.mark.parametrize("carrier_id", CARRIERS)
def test_the_time_and_the_memory_of_a_large_body_grow_with_its_size_alone(carrier_id: str) -> None:
    body = amplified(fixtures(carrier_id), Random(carrier_id), LARGE_BYTES)
    examine(CARRIERS[carrier_id], body, weigh=True)


def raising(error: Exception) -> Callable[[], Normalized]:
    def normalize() -> Normalized:
        raise error

    return normalize


def saying(**changes: Any) -> Callable[[], Normalized]:
    return lambda: Normalized(readings=(replace(SOUND, **changes),))


def greedy() -> Normalized:
    return Normalized(readings=(SOUND,) * len(bytearray(8 * 1024 * 1024)))


DEFECTS: Final[dict[str, Callable[[], Normalized]]] = {
    "an undeclared error": raising(KeyError("x")),
    "an error of ours that is not its own": raising(
        UnreadableMessageError(Cause.NORMALIZER_FAILED, "x")
    ),
    "the body in an error": raising(UnreadableMessageError(Cause.UNREADABLE, "x" * 5000)),
    "a scan without a status": saying(status=None),
    "a status that is text": saying(status="delivered"),
    "a number that is no text": saying(tracking_number=7),
    "a NUL": saying(piece="a\x00"),
    "a lone surrogate": saying(description="\ud800"),
    # the defect
    "a time without offset": saying(time=received(datetime(2026, 1, 1))),  # noqa: DTZ001
    "a time before the first year": saying(
        time=received(datetime.fromisoformat("0001-01-01T00:00:00+14:00"))
    ),
    "too much memory": greedy,
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(defect: str) -> None:
    carrier = replace(
        CARRIERS["ups"],
        stable="1",
        normalizers={"1": lambda _body, _received_at: DEFECTS[defect]()},
    )
    with pytest.raises((AssertionError, KeyError, OverflowError)):
        examine(carrier, b"{}", weigh=True)


def test_a_sound_reading_passes() -> None:
    carrier = replace(
        CARRIERS["ups"], stable="1", normalizers={"1": lambda _body, _received_at: saying()()}
    )
    assert examine(carrier, b"{}") == "events"

"""Signals that each answer gives about its receiver."""

import pytest

from statesvc.delivery.limiter.signal import Signal, pause_asked_for, signal_of
from statesvc.delivery.outcome import AttemptOutcome, outcome_of


def test_2xx_is_well_and_5xx_408_and_429_are_overload_and_the_rest_says_nothing() -> None:
    for status in range(100, 600):
        signal = signal_of(outcome_of(status), status)
        if 200 <= status < 300:
            assert signal is Signal.OK
        else:
            assert signal is (
                Signal.OVERLOADED if status >= 500 or status in {408, 429} else Signal.REFUSED
            )


@pytest.mark.parametrize(
    ("outcome", "signal"),
    [
        (AttemptOutcome.TIMED_OUT, Signal.OVERLOADED),
        (AttemptOutcome.UNREACHABLE, Signal.OVERLOADED),
        (AttemptOutcome.ADDRESS_REFUSED, Signal.REFUSED),
        (AttemptOutcome.UNSIGNED, Signal.REFUSED),
        (AttemptOutcome.CLIENT_MISSING, Signal.REFUSED),
    ],
)
def test_no_answer_is_overload_unless_nothing_was_sent(
    outcome: AttemptOutcome, signal: Signal
) -> None:
    assert signal_of(outcome, None) is signal


@pytest.mark.parametrize(
    ("outcome", "signal"),
    [
        (AttemptOutcome.NOT_STORED, Signal.OVERLOADED),
        (AttemptOutcome.UNROUTABLE, Signal.REFUSED),
        (AttemptOutcome.DENIED, Signal.REFUSED),
    ],
)
def test_of_what_a_broker_answers_only_a_want_of_room_is_overload(
    outcome: AttemptOutcome, signal: Signal
) -> None:
    assert signal_of(outcome, None) is signal


@pytest.mark.parametrize(
    ("status", "retry_after", "pause"),
    [
        (429, 30.0, 30.0),
        (503, 30.0, 30.0),
        (503, 0.0, 1.0),
        (429, 1e9, 86_400.0),
        (429, None, None),
        (500, 30.0, None),
        (None, 30.0, None),
    ],
)
def test_only_429_and_503_ask_for_a_pause_within_bounds(
    status: int | None, retry_after: float | None, pause: float | None
) -> None:
    assert pause_asked_for(status, retry_after) == pause

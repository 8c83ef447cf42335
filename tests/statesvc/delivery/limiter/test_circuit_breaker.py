"""When a subscriber is left alone: circuit breaker, budget of retries, signals."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from statesvc.delivery.limiter.circuit_breaker import (
    ATTEMPTS_MIN,
    LONGER_FACTOR,
    OPEN_SECONDS,
    OPEN_SECONDS_MAX,
    WINDOW_SECONDS,
    BreakerState,
    CircuitBreaker,
)
from statesvc.delivery.limiter.signal import Signal, pause_asked_for, signal_of
from statesvc.delivery.limiter.subscription_limiter import (
    BALANCE_MAX,
    FLOOR_PER_SECOND,
    RETRIES_SHARE,
    RetryBudget,
)
from statesvc.delivery.outcome import AttemptOutcome, outcome_of


def end(
    breaker: CircuitBreaker,
    now: float,
    *,
    failed: bool,
    is_probe: bool = False,
    started_at: float | None = None,
) -> None:
    breaker.finished(
        failed=failed,
        is_probe=is_probe,
        started_at=now if started_at is None else started_at,
        now=now,
    )


def opened() -> CircuitBreaker:
    breaker = CircuitBreaker()
    for now in range(ATTEMPTS_MIN):
        end(breaker, now, failed=True)
    return breaker


BUSY = [(place / 400, False) for place in range(1_000)]


@pytest.mark.parametrize(
    ("ends", "state"),
    {
        "nine failures": ([(n, True) for n in range(9)], BreakerState.CLOSED),
        "ten failures": ([(n, True) for n in range(10)], BreakerState.OPEN),
        "six in ten": ([(n, n % 10 >= 4) for n in range(20)], BreakerState.CLOSED),
        "seven in ten": ([(n, n % 10 >= 3) for n in range(20)], BreakerState.OPEN),
        "long past": (
            [(n * WINDOW_SECONDS / 5, n % 4 > 0) for n in range(30)],
            BreakerState.CLOSED,
        ),
        "a busy past does not hide that it is down now": (
            [(n / 1_000, n >= 10_000) for n in range(10_070)],
            BreakerState.OPEN,
        ),
        "silent after a busy past": ([*BUSY, *[(17, True)] * ATTEMPTS_MIN], BreakerState.OPEN),
        "nearly silent": ([*BUSY, *[(17, True)] * (ATTEMPTS_MIN - 1)], BreakerState.CLOSED),
        "a blip that a whole crowd meets": ([*BUSY, *[(2.6, True)] * 60], BreakerState.CLOSED),
    }.values(),
)
def test_it_opens_when_most_of_the_last_attempts_failed(
    ends: list[tuple[float, bool]], state: BreakerState
) -> None:
    breaker = CircuitBreaker()
    for now, failed in ends:
        end(breaker, now, failed=failed)
    assert breaker.state is state
    assert (breaker.open_until is None) == (state is BreakerState.CLOSED)


def test_a_probe_that_is_taken_closes_it_and_one_failure_does_not_open_it_again() -> None:
    breaker = opened()
    breaker.probing()
    end(breaker, 100, failed=False, is_probe=True)
    end(breaker, 101, failed=True)
    assert (breaker.state, breaker.open_until) == (BreakerState.CLOSED, None)


def test_each_probe_that_fails_keeps_it_open_longer_up_to_a_bound() -> None:
    breaker, now, pauses = opened(), 100.0, []
    for _ in range(20):
        breaker.probing()
        end(breaker, now, failed=True, is_probe=True)
        assert breaker.open_until is not None
        pauses.append(breaker.open_until - now)
        now = breaker.open_until
    assert pauses[0] == OPEN_SECONDS * LONGER_FACTOR
    assert pauses == sorted(pauses)
    assert pauses[-1] == OPEN_SECONDS_MAX


def test_late_answers_from_before_it_opened_change_nothing() -> None:
    breaker = opened()
    before = (breaker.state, breaker.open_until)
    end(breaker, 50, failed=False, started_at=1)
    end(breaker, 51, failed=True, started_at=1)
    assert (breaker.state, breaker.open_until) == before
    breaker.probing()
    end(breaker, 60, failed=False, is_probe=True)
    for place in range(ATTEMPTS_MIN):
        end(breaker, 61 + place, failed=True, started_at=2)
    assert breaker.state is BreakerState.CLOSED


def spend(budget: RetryBudget, now: float) -> int:
    retries = budget.available(now)
    for _ in range(retries):
        budget.retry(now)
    return retries


def test_vain_retries_come_to_a_fifth_of_the_first_attempts_and_the_floor() -> None:
    budget, retries = RetryBudget(), 0
    for second in range(100):
        for _ in range(500):
            budget.first()
            retries += spend(budget, float(second))
    expected = 100 * (500 * RETRIES_SHARE + FLOOR_PER_SECOND)
    assert expected * 0.9 < retries <= expected + BALANCE_MAX


def test_a_quiet_receiver_still_gets_its_retries() -> None:
    budget = RetryBudget()
    assert spend(budget, 0) == BALANCE_MAX
    assert spend(budget, 0) == 0
    assert 0 < budget.seconds_until_next(0) <= 1 / FLOOR_PER_SECOND
    assert spend(budget, 1) == FLOOR_PER_SECOND
    assert spend(budget, 1000) == BALANCE_MAX


def test_retries_that_are_taken_cost_nothing() -> None:
    budget = RetryBudget()
    for _ in range(1000):
        assert budget.available(0) > 0
        budget.retry(0)
        budget.taken()


@given(
    st.lists(
        st.one_of(st.just("first"), st.just("retry"), st.just("taken"), st.floats(0, 10)),
        max_size=200,
    )
)
def test_it_never_allows_more_than_its_balance_at_once(steps: list[str | float]) -> None:
    budget, now = RetryBudget(), 0.0
    for step in steps:
        match step:
            case "first":
                budget.first()
            case "retry":
                budget.retry(now)
            case "taken":
                budget.taken()
            case float():
                now += step
        assert budget.available(now) <= BALANCE_MAX
        assert (budget.seconds_until_next(now) == 0) == (budget.available(now) >= 1)


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
        (AttemptOutcome.NOT_STORED, Signal.OVERLOADED),
        (AttemptOutcome.UNROUTABLE, Signal.REFUSED),
        (AttemptOutcome.DENIED, Signal.REFUSED),
    ],
)
def test_no_answer_is_overload_unless_nothing_was_sent(
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

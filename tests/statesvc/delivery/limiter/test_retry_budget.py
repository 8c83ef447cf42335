"""Retries stay a small share of the traffic, unless they succeed."""

import hypothesis.strategies as st
from hypothesis import given

from statesvc.delivery.limiter.retry_budget import BALANCE_MAX, FLOOR_PER_SECOND, SHARE, RetryBudget


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
    expected = 100 * (500 * SHARE + FLOOR_PER_SECOND)
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

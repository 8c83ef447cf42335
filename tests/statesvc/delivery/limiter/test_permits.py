"""The limiter as a whole: whatever happens in whatever order, its bounds hold and its permits
balance.
"""

from collections import Counter
from uuid import UUID, uuid4

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)

from statesvc.delivery.limiter.circuit_breaker import BreakerState
from statesvc.delivery.limiter.concurrency import MAXIMUM
from statesvc.delivery.limiter.permits import Permits
from statesvc.delivery.limiter.signal import Signal
from statesvc.delivery.limiter.subscription_limiter import RETRY_SHARE, AttemptEnd, Permit

TOTAL = 16
SUBSCRIPTIONS = [UUID(int=number) for number in range(3)]
Held = tuple[UUID, Permit]


class PermitsMachine(RuleBasedStateMachine):
    """Claims, answers and settling in any order, as the notifier makes them."""

    held = Bundle("held")
    unsettled = Bundle("unsettled")

    def __init__(self) -> None:
        super().__init__()
        self.permits = Permits(TOTAL)
        self.now = 0.0
        self.in_flight: Counter[UUID] = Counter()
        self.probes: Counter[UUID] = Counter()
        self.left: Counter[UUID] = Counter()
        self.waiting: Counter[UUID] = Counter()

    @rule(seconds=st.floats(0, 100))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=held, subscription_id=st.sampled_from(SUBSCRIPTIONS), is_retry=st.booleans())
    # drawn by name
    def claim_one(self, subscription_id: UUID, is_retry: bool) -> Held | None:  # noqa: FBT001
        if self.waiting[subscription_id]:
            # as where it asks during a claim
            assert self.permits.take(subscription_id, self.now, is_retry=is_retry) is None
        offer = self.permits.offer(self.now, limit=64)
        allowance = offer.known.get(subscription_id, offer.fresh)
        if (
            not offer.free
            or not allowance.free
            or (is_retry and not min(allowance.retries, offer.retries))
        ):
            return None
        if allowance.not_before is not None and allowance.not_before > self.now:
            return None
        permit = self.permits.take(subscription_id, self.now, is_retry=is_retry)
        assert permit is not None
        self.permits.claimed(
            offer,
            found=Counter({subscription_id: 1}),
            found_retries=Counter({subscription_id: int(is_retry)}),
        )
        self.in_flight[subscription_id] += 1
        self.left[subscription_id] += 1
        self.probes[subscription_id] += permit.is_probe
        assert self.probes[subscription_id] <= 1, "one probe at a time"
        assert not self.waiting[subscription_id], "the receiver asked to wait"
        return subscription_id, permit

    @rule(
        target=unsettled,
        one=consumes(held),
        seconds=st.floats(0, 20),
        signal=st.sampled_from([Signal.OK, Signal.OVERLOADED, Signal.REFUSED, None]),
        asks=st.booleans(),
    )
    def end(
        self,
        one: Held | None,
        seconds: float,
        signal: Signal | None,
        asks: bool,  # noqa: FBT001
    ) -> tuple[UUID, AttemptEnd | None] | None:
        if one is None:
            return None
        subscription_id, permit = one
        self.now = max(self.now, permit.started_at + seconds)
        waits = asks and signal is Signal.OVERLOADED
        end = (
            None
            if signal is None
            else AttemptEnd(signal=signal, at=self.now, latency_seconds=seconds, asks_to_wait=waits)
        )
        self.permits.give(subscription_id, permit, end)
        self.in_flight[subscription_id] -= 1
        self.probes[subscription_id] -= permit.is_probe
        self.waiting[subscription_id] += waits
        return subscription_id, end

    @rule(one=consumes(unsettled))
    def settle(self, one: tuple[UUID, AttemptEnd | None] | None) -> None:
        if one is None:
            return
        subscription_id, end = one
        self.permits.settled(subscription_id, end)
        self.left[subscription_id] -= 1
        self.waiting[subscription_id] -= end is not None and end.asks_to_wait

    @precondition(lambda self: self.left.total() == 0)
    @rule()
    def forget(self) -> None:
        self.now += 3600
        self.permits.forget_idle(self.now)

    @invariant()
    def bounds_hold(self) -> None:
        states = self.permits.states()
        assert self.permits.unsettled == self.left.total() <= TOTAL
        for subscription_id, state in states.items():
            assert state.in_flight == self.in_flight[subscription_id] <= TOTAL // 4
            assert self.left[subscription_id] <= TOTAL // 4
            assert 1 <= state.limit <= min(MAXIMUM, TOTAL // 4)
        offer = self.permits.offer(self.now, limit=64)
        assert 0 <= offer.free <= TOTAL - self.left.total()
        for allowance in (offer.fresh, *offer.known.values()):
            assert 0 <= allowance.retries <= allowance.free <= TOTAL // 4

    @invariant()
    def somebody_may_go_when_nothing_is_under_way(self) -> None:
        if self.left.total() == 0:
            offer = self.permits.offer(self.now, limit=64)
            assert offer.free == TOTAL
            assert all(allowance.free >= 1 for allowance in offer.known.values())


TestPermits = PermitsMachine.TestCase


def test_the_bound_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Permits(0)


def test_retries_of_all_subscriptions_leave_three_fifths_to_news() -> None:
    permits = Permits(10)
    for taken in range(4):
        assert permits.offer(0, limit=64).retries == int(10 * RETRY_SHARE) - taken
        assert permits.take(uuid4(), 0, is_retry=True) is not None
    assert permits.offer(0, limit=64).retries == 0


def test_with_a_single_permit_news_and_retries_take_turns() -> None:
    permits, subscription_id = Permits(4), uuid4()
    kinds = []
    for now in range(6):
        offer = permits.offer(now, limit=64)
        allowance = offer.known.get(subscription_id, offer.fresh)
        is_retry = bool(allowance.retries)
        permit = permits.take(subscription_id, now, is_retry=is_retry)
        permits.claimed(
            offer,
            found=Counter({subscription_id: 1}),
            found_retries=Counter({subscription_id: int(is_retry)}),
        )
        assert permit is not None
        kinds.append(is_retry)
        end = AttemptEnd(signal=Signal.OK, at=now, latency_seconds=0.1)
        permits.give(subscription_id, permit, end)
        permits.settled(subscription_id, end)
    assert kinds == [True, False] * 3


def test_without_news_the_retries_turn_comes_at_once() -> None:
    permits, subscription_id = Permits(4), uuid4()
    permit = permits.take(subscription_id, 0, is_retry=True)
    assert permit is not None
    end = AttemptEnd(signal=Signal.OK, at=0, latency_seconds=0.1)
    permits.give(subscription_id, permit, end)
    permits.settled(subscription_id, end)
    offer = permits.offer(1, limit=64)
    assert (offer.known[subscription_id].free, offer.known[subscription_id].retries) == (1, 0)
    assert permits.claimed(offer, found=Counter(), found_retries=Counter()), "claim again"
    assert permits.offer(1, limit=64).known.get(subscription_id, offer.fresh).retries == 1


def test_retries_that_were_withheld_are_claimed_after_news_that_earned_them() -> None:
    permits, subscription_id = Permits(256), uuid4()
    # all of the budget
    for is_retry in (*[True] * 25, False):
        permit = permits.take(subscription_id, 0, is_retry=is_retry)
        assert permit is not None
        permits.give(subscription_id, permit, None)
        permits.settled(subscription_id, None)
    offer = permits.offer(0, limit=64)
    assert (offer.known[subscription_id].free, offer.known[subscription_id].retries) == (2, 0)
    assert permits.take(subscription_id, 0, is_retry=False) is not None
    permits.claimed(offer, found=Counter({subscription_id: 1}), found_retries=Counter())
    assert permits.offer(0, limit=64).known[subscription_id].free > 0
    assert permits.wants_more(subscription_id)


def test_an_idle_limiter_is_forgotten_and_one_that_is_in_use_or_broken_is_not() -> None:
    permits, idle, busy, broken = Permits(64), uuid4(), uuid4(), uuid4()
    good = AttemptEnd(signal=Signal.OK, at=0, latency_seconds=0.1)
    bad = AttemptEnd(signal=Signal.OVERLOADED, at=0, latency_seconds=0.1)
    for subscription_id, end, count in ((idle, good, 1), (broken, bad, 10)):
        for _ in range(count):
            permit = permits.take(subscription_id, 0, is_retry=False)
            assert permit is not None
            permits.give(subscription_id, permit, end)
            permits.settled(subscription_id, end)
    permits.take(busy, 0, is_retry=False)
    assert permits.states()[broken].breaker is BreakerState.OPEN
    assert permits.forget_idle(10_000) == [idle]
    assert permits.states().keys() == {busy, broken}


def test_a_breaker_that_opened_while_the_clock_was_ahead_lets_one_probe_through() -> None:
    hour, permits, receiver = 3600.0, Permits(TOTAL), SUBSCRIPTIONS[0]
    now = hour
    while (
        receiver not in permits.states()
        or permits.states()[receiver].breaker is BreakerState.CLOSED
    ):
        permit = permits.take(receiver, now, is_retry=False)
        assert permit is not None
        end = AttemptEnd(signal=Signal.REFUSED, at=now + 1, latency_seconds=1.0)
        permits.give(receiver, permit, end)
        permits.settled(receiver, end)
        now += 1
    assert permits.take(receiver, now, is_retry=True) is None
    assert permits.offer(now, limit=64).known[receiver].not_before is not None
    # set right again
    now -= hour
    assert permits.offer(now, limit=64).known[receiver].not_before is None
    probe = permits.take(receiver, now, is_retry=True)
    assert probe is not None
    assert permits.take(receiver, now, is_retry=True) is None, "as where it was offered before"
    offer = permits.offer(now, limit=64)
    assert offer.known[receiver].free == 0
    permits.wait_for(offer)
    assert permits.wants_more(receiver), "no claim looked for it"
    permits.give(receiver, probe, None)
    assert permits.offer(now, limit=64).known[receiver].free == 1, "it was never sent"

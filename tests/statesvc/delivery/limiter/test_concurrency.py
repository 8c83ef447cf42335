"""Limit of concurrency: growth, both ways of coming down, and what is learned as usual."""

import random
from collections import deque

import hypothesis.strategies as st
from hypothesis import given

from statesvc.delivery.limiter.concurrency import INITIAL, MAXIMUM, CohortMark, Concurrency
from statesvc.delivery.limiter.signal import Signal


class Crowd:
    """Keeps a limit reached: whatever is free is started at once, and takes as long as `seconds`
    says.
    """

    def __init__(self, limited: Concurrency) -> None:
        self.limited = limited
        self.now = 0.0
        self.peak = 0
        self._under_way: deque[tuple[float, float, CohortMark]] = deque()

    def run(self, answers: int, *, seconds: float, each: float = 0.0) -> None:
        """Run answers. `each`: what one request more makes all of them slower."""
        for _ in range(answers):
            while len(self._under_way) < self.limited.limit:
                mark = self.limited.started(len(self._under_way) + 1, now=self.now)
                takes = seconds + each * len(self._under_way)
                self._under_way.append((self.now + takes, self.now, mark))
            self.peak = max(self.peak, len(self._under_way))
            self._under_way = deque(sorted(self._under_way, key=lambda one: one[0]))
            self.end(Signal.OK)

    def end(self, signal: Signal | None) -> None:
        """End the next one."""
        ends_at, started_at, mark = self._under_way.popleft()
        self.now = max(self.now, ends_at)
        self.limited.finished(
            mark, signal, started_at=started_at, now=self.now, latency_seconds=ends_at - started_at
        )

    def end_all(self, signal: Signal | None) -> None:
        while self._under_way:
            self.end(signal)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*Signal, None]), st.floats(0, 30), st.floats(0, 5), st.integers(1, 100)
        ),
        max_size=300,
    ),
    st.integers(1, 100),
)
def test_the_limit_stays_between_one_and_its_maximum(
    answers: list[tuple[Signal | None, float, float, int]], maximum: int
) -> None:
    limited, now = Concurrency(maximum=maximum), 0.0
    for signal, latency, pause, in_flight in answers:
        mark = limited.started(in_flight, now=now)
        limited.finished(mark, signal, started_at=now, now=now + latency, latency_seconds=latency)
        now += pause
        assert 1 <= limited.limit <= min(maximum, MAXIMUM)
        assert limited.limit <= max(limited.level, 1)


def test_it_grows_by_one_about_every_two_round_trips_while_it_is_reached() -> None:
    cohort = Crowd(Concurrency())
    cohort.run(400, seconds=0.1)
    assert INITIAL + 10 <= cohort.limited.level <= INITIAL + 30


def test_it_does_not_grow_while_it_is_not_reached() -> None:
    limited, now = Concurrency(), 0.0
    for _ in range(200):
        mark = limited.started(1, now=now)
        limited.finished(mark, Signal.OK, started_at=now, now=now + 0.1, latency_seconds=0.1)
        now += 0.1
    assert limited.level == INITIAL


def test_an_overload_halves_it_once_however_many_of_the_same_crowd_meet_it() -> None:
    cohort = Crowd(Concurrency())
    cohort.run(500, seconds=0.1)
    before = cohort.limited.level
    cohort.end_all(Signal.OVERLOADED)
    assert cohort.limited.level == before // 2
    cohort.run(1, seconds=0.1)
    cohort.end_all(Signal.OVERLOADED)
    assert cohort.limited.level in {before // 4, (before // 2 + 1) // 2}


def test_other_refusals_say_nothing_about_how_many_it_bears() -> None:
    limited = Concurrency()
    for now in range(100):
        mark = limited.started(INITIAL, now=now)
        limited.finished(mark, Signal.REFUSED, started_at=now, now=now + 9, latency_seconds=9)
    assert limited.level == INITIAL


def test_answers_that_become_slower_with_the_crowd_bring_it_down() -> None:
    cohort = Crowd(Concurrency())
    cohort.run(5_000, seconds=0.05, each=0.0)
    assert cohort.limited.level > 50
    cohort.run(5_000, seconds=0.01, each=0.01)
    assert cohort.limited.level <= 8


def test_irregular_answers_do_not_hold_it_down_and_slow_ones_are_heard() -> None:
    chance, cohort = random.Random(1), Crowd(Concurrency())
    for _ in range(5_000):
        cohort.run(1, seconds=chance.expovariate(20))
    assert cohort.limited.level >= 20
    assert cohort.limited.mean_latency_seconds is not None
    assert 0.035 < cohort.limited.mean_latency_seconds < 0.09, (
        "the mean of all, not that of the fast ones"
    )


def test_what_was_under_way_before_the_last_move_is_not_heard() -> None:
    limited = Concurrency()
    old = limited.started(1, now=0)
    mark = limited.started(2, now=0)
    limited.finished(mark, Signal.OVERLOADED, started_at=0, now=1, latency_seconds=1)
    halved = limited.level
    limited.finished(old, Signal.OVERLOADED, started_at=0, now=2, latency_seconds=2)
    assert limited.level == halved


def test_attempts_that_were_broken_off_leave_nothing_behind() -> None:
    limited, now = Concurrency(), 0.0
    for _ in range(50):
        mark = limited.started(1, now=now)
        limited.finished(mark, None, started_at=now, now=now, latency_seconds=0)
    assert limited.mean_latency_seconds is None
    mark = limited.started(1, now=now)
    limited.finished(mark, Signal.OK, started_at=now, now=now + 0.1, latency_seconds=0.1)
    assert limited.mean_latency_seconds is not None

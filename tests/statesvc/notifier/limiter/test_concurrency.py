"""How many at a time: growth, both ways of coming down, and what is learned as usual."""

import hypothesis.strategies as st
from hypothesis import given

from statesvc.notifier.limiter.concurrency import INITIAL, MAXIMUM, Concurrency
from statesvc.notifier.limiter.signal import Signal


def rounds(limited: Concurrency, count: int, *, start: float = 0.0, seconds: float = 0.1) -> float:
    """Keeps the limit reached for so many round trips. Answers the time."""
    now = start
    for _ in range(count):
        limit = limited.limit
        for place in range(limit):
            limited.started(place + 1)
        for _ in range(limit):
            limited.finished(Signal.OK, started_at=now, now=now + seconds, latency_seconds=seconds)
        now += seconds
    return now


@given(
    st.lists(st.tuples(st.sampled_from(Signal), st.floats(0, 30), st.floats(0, 5), st.integers(1, 100)), max_size=300), st.integers(1, 100)
)
def test_the_limit_stays_between_one_and_its_maximum(answers: list[tuple[Signal, float, float, int]], maximum: int) -> None:
    limited, now = Concurrency(maximum=maximum), 0.0
    for signal, latency, pause, in_flight in answers:
        limited.started(in_flight)
        now += pause
        limited.finished(signal, started_at=now - latency, now=now, latency_seconds=latency)
        assert 1 <= limited.limit <= min(maximum, MAXIMUM)


def test_it_grows_by_one_about_every_two_round_trips_while_it_is_reached() -> None:
    limited = Concurrency()
    rounds(limited, 40)
    assert INITIAL + 10 <= limited.limit <= INITIAL + 20


def test_it_does_not_grow_while_it_is_not_reached() -> None:
    limited, now = Concurrency(), 0.0
    for _ in range(200):
        limited.started(1)
        limited.finished(Signal.OK, started_at=now, now=now + 0.1, latency_seconds=0.1)
        now += 0.1
    assert limited.limit == INITIAL


def test_an_overload_halves_it_once_however_many_of_the_same_crowd_meet_it() -> None:
    limited = Concurrency()
    now = rounds(limited, 60)
    before = limited.limit
    for _ in range(before):
        limited.finished(Signal.OVERLOADED, started_at=now, now=now + 0.1, latency_seconds=0.1)
    assert limited.limit == before // 2
    limited.finished(Signal.OVERLOADED, started_at=now + 0.2, now=now + 0.3, latency_seconds=0.1)
    assert limited.limit == before // 4


def test_other_refusals_say_nothing_about_how_many_it_bears() -> None:
    limited = Concurrency()
    now = rounds(limited, 20)
    before = limited.limit
    for _ in range(100):
        limited.finished(Signal.REFUSED, started_at=now, now=now + 9, latency_seconds=9)
    assert limited.limit == before


def test_answers_that_become_slower_with_the_crowd_bring_it_down() -> None:
    limited, now, peak = Concurrency(), 0.0, 0
    for _ in range(600):
        limit = limited.limit
        peak = max(peak, limit)
        now = rounds(limited, 1, start=now, seconds=0.05 * max(1.0, limit / 10))
    assert 8 <= limited.limit <= 14
    assert peak <= 15
    assert limited.mean_latency_seconds is not None
    assert 0.045 < limited.mean_latency_seconds < 0.07


def test_a_receiver_that_becomes_slower_by_itself_is_not_asked_less_for_long() -> None:
    limited = Concurrency(maximum=32)
    now = rounds(limited, 200)
    assert limited.limit >= 16
    rounds(limited, 200, start=now, seconds=0.4)
    assert limited.limit >= 16
    assert limited.mean_latency_seconds is not None
    assert limited.mean_latency_seconds > 0.35


def test_one_pause_of_the_receiver_does_not_become_the_usual() -> None:
    limited = Concurrency()
    now = rounds(limited, 100)
    usual = limited.mean_latency_seconds
    assert usual is not None
    now = rounds(limited, 1, start=now, seconds=5.0)
    rounds(limited, 100, start=now)
    assert limited.mean_latency_seconds is not None
    assert limited.mean_latency_seconds < usual * 1.5


def test_what_was_under_way_before_the_last_change_is_not_heard() -> None:
    limited = Concurrency()
    now = rounds(limited, 10)
    before = limited.limit
    limited.finished(Signal.OVERLOADED, started_at=now - 5, now=now + 0.1, latency_seconds=5)
    assert limited.limit == before

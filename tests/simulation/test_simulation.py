"""The limiter against receivers in trouble, in virtual time: none is hurt, none is sent less than
it bears, all recover.
"""

from collections.abc import Callable
from functools import partial
from uuid import UUID

import pytest

from statesvc.delivery.limiter.permits import Permits
from tests.simulation.backlog import PER_SECOND, RECEIVERS, begin
from tests.simulation.happenings import Events
from tests.simulation.notifier import Fixed, Notifier, Subscriber
from tests.simulation.receivers import Behaviour, Collapsing, Dead, RateLimited, Reply, Slow
from tests.simulation.scenarios import BEGINS, ENDS, SCENARIOS, adaptive, run, seconds_to_recover

RECOVERY_SEEN_SECONDS = 15


def test_a_receiver_that_collapses_beyond_20_stays_well_and_loses_no_more_than_15_percent_to_a_hand_tuned_limit() -> (
    None
):
    course = run(Collapsing(), Permits(256), seconds=60)
    best = max(
        run(Collapsing(), Fixed(limit), seconds=30).throughput(5, 30) for limit in (18, 20, 22, 24)
    )
    assert course.throughput(5, 60) >= 0.85 * best
    assert course.peak <= 30
    assert course.statuses[503] == 0


def test_without_a_limiter_the_same_receiver_breaks_down() -> None:
    # the proof that the simulation could fail
    course = run(Collapsing(), Fixed(64), seconds=10)
    assert course.throughput(2, 10) < 10
    assert course.statuses[503] > 1000


@pytest.mark.parametrize(
    ("name", "peak_max", "sent_min", "recovers_max"),
    [
        ("shrinks", 35, 60, 3),
        ("slow", 35, 5, 5),
        ("dead", 35, 0, 10),
        ("broken", 35, 0, 10),
        ("flapping", 35, 50, 5),
        ("429-ing", 40, 45, 3),
        ("bursty", 64, 100, 8),
        ("freezes", 35, 0, 2),
    ],
)
def test_a_receiver_in_trouble_is_not_pressed_and_soon_notified_again_as_fast_as_before(
    name: str, peak_max: int, sent_min: float, recovers_max: float
) -> None:
    scenario = next(scenario for scenario in SCENARIOS if scenario.name.startswith(name))
    course = adaptive(scenario, seconds=ENDS + RECOVERY_SEEN_SECONDS)
    assert course.peak <= peak_max
    assert course.throughput(scenario.begins, scenario.ends) >= sent_min
    assert seconds_to_recover(course, scenario) <= recovers_max


def test_a_dead_receiver_is_asked_by_single_probes() -> None:
    scenario = next(scenario for scenario in SCENARIOS if scenario.name.startswith("broken"))
    course = adaptive(scenario, seconds=ENDS)
    late = [in_flight for at, in_flight in course.started if BEGINS + 3 <= at < ENDS]
    assert set(late) == {1}
    assert len(late) < 20


def test_a_pause_that_was_asked_for_is_honoured_to_the_millisecond() -> None:
    receiver = RateLimited(per_second=10, retry_after_seconds=5)
    refused: list[float] = []

    class Watched:
        def reply(self, now: float, in_flight: int) -> Reply:
            reply = receiver.reply(now, in_flight)
            if reply.status == 429:
                refused.append(now + reply.after_seconds)
            return reply

    course = run(Watched(), Permits(256), seconds=60)
    assert refused
    for at in refused:
        assert not any(at < start < at + 5 for start, _ in course.started)


def test_two_bad_ones_among_fifty_take_nothing_from_the_others() -> None:
    well = told_among(50, lambda _place: Collapsing(capacity=20, seconds=0.02))
    mixed = told_among(
        50,
        lambda place: (
            Dead()
            if place == 0
            else Slow()
            if place == 1
            else Collapsing(capacity=20, seconds=0.02)
        ),
    )
    assert waited(mixed[2:]) <= max(2 * waited(well[2:]), 0.05)


def told_among(count: int, receiver: Callable[[int], Behaviour]) -> list[Subscriber]:
    """Send each of them ten notifications a second, for half a minute."""
    events = Events()
    subscribers = {UUID(int=place + 1): Subscriber(receiver(place)) for place in range(count)}
    notifier = Notifier(events, Permits(256), subscribers)

    def put(subscription_id: UUID) -> None:
        notifier.put(subscription_id)
        if events.now < 30:
            events.after(0.1, partial(put, subscription_id))

    for place, subscription_id in enumerate(subscribers):
        events.after(place * 0.002, partial(put, subscription_id))
    events.run(60)
    return list(subscribers.values())


def waited(subscribers: list[Subscriber]) -> float:
    """Return the 99th percentile of the seconds from a notification to its first attempt."""
    waits = sorted(wait for subscriber in subscribers for wait in subscriber.first_waits)
    assert len(waits) >= 300 * len(subscribers)
    return waits[int(0.99 * len(waits))]


@pytest.mark.parametrize("receiver", RECEIVERS.values(), ids=RECEIVERS)
def test_after_a_long_hold_a_receiver_is_not_sent_a_day_at_once(
    receiver: Callable[[], Behaviour],
) -> None:
    found = begin(receiver())
    assert found.in_first_second <= 1.5 * PER_SECOND
    assert found.most_in_a_second <= 1.5 * PER_SECOND
    assert found.peak <= 16
    assert found.refused_share <= 0.12
    assert found.per_second >= 0.6 * PER_SECOND

"""A receiver that is well, has a trouble for a while, and is well again; and one notifier that has
more to send than it bears.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from statesvc.delivery.limiter.permits import Permits
from tests.simulation.happenings import Events
from tests.simulation.notifier import Fixed, Limiting, Notifier, Subscriber
from tests.simulation.receivers import (
    Behaviour,
    Broken,
    Bursty,
    Collapsing,
    Dead,
    Freezing,
    RateLimited,
    Slow,
    Sometimes,
)

OFFERED_PER_SECOND: Final = 1000.0
BEGINS: Final = 30.0
ENDS: Final = 60.0
SECONDS: Final = 120.0
FIXED_LIMITS: Final = (8, 12, 16, 20, 22, 24, 28, 32, 48)
RECOVERED_SHARE: Final = 0.8
_ID: Final = UUID(int=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The trouble lasts from `begins` to `ends`; both 0: there is none."""

    name: str
    receiver: Callable[[], Behaviour]
    begins: float = BEGINS
    ends: float = ENDS


def troubled(trouble: Callable[[], Behaviour]) -> Callable[[], Behaviour]:
    return lambda: Sometimes(Collapsing(), trouble(), lambda now: BEGINS <= now < ENDS)


SCENARIOS: Final = (
    Scenario(name="well: bears 20, collapses beyond", receiver=Collapsing, begins=0, ends=0),
    Scenario(name="shrinks: bears 5 for 30 s", receiver=troubled(lambda: Collapsing(capacity=5))),
    Scenario(name="slow: 2 s an answer for 30 s", receiver=troubled(Slow)),
    Scenario(name="dead: no answer for 30 s", receiver=troubled(Dead)),
    Scenario(name="broken: 503 for 30 s", receiver=troubled(Broken)),
    Scenario(
        name="flapping: 503 every other 3 s for 30 s",
        receiver=lambda: Sometimes(
            Collapsing(), Broken(), lambda now: BEGINS <= now < ENDS and now % 6 < 3
        ),
    ),
    Scenario(name="429-ing: 50/s and Retry-After: 1 for 30 s", receiver=troubled(RateLimited)),
    Scenario(name="bursty: answers every 250 ms for 30 s", receiver=troubled(Bursty)),
    Scenario(
        name="freezes for 1 s", receiver=lambda: Freezing(Collapsing(), at=BEGINS), ends=BEGINS + 1
    ),
)


def run(receiver: Behaviour, limiting: Limiting, *, seconds: float = SECONDS) -> Subscriber:
    """Run with more offered than it bears, from the beginning to the end."""
    events, subscriber = Events(), Subscriber(receiver)
    notifier = Notifier(events, limiting, {_ID: subscriber})

    def put() -> None:
        notifier.put(_ID)
        events.after(1 / OFFERED_PER_SECOND, put)

    put()
    events.run(seconds)
    return subscriber


def adaptive(scenario: Scenario, *, seconds: float = SECONDS) -> Subscriber:
    return run(scenario.receiver(), Permits(256), seconds=seconds)


def best_fixed(scenario: Scenario) -> tuple[int, float]:
    """Return the fixed limit that brings the most through, tuned with hindsight; and how much."""
    found = [
        (run(scenario.receiver(), Fixed(limit)).throughput(0, SECONDS), limit)
        for limit in FIXED_LIMITS
    ]
    throughput, limit = max(found)
    return limit, throughput


def seconds_to_recover(subscriber: Subscriber, scenario: Scenario) -> float:
    """Return the time from the end of the trouble until a second brings four fifths of what
    one brought before it.
    """
    usual = (
        subscriber.throughput(10, scenario.begins)
        if scenario.begins
        else subscriber.throughput(30, SECONDS)
    )
    at = scenario.ends
    while at < SECONDS - 1 and subscriber.throughput(at, at + 1) < RECOVERED_SHARE * usual:
        at += 0.1
    return at - scenario.ends

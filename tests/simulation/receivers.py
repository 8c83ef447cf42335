"""Receivers as they misbehave in the field.

Each answers a request with a status and how long it took to answer.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

TIMEOUT_SECONDS: Final = 15.0
JITTER: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`status` None: it never answers, and the sender gives up after its timeout."""

    status: int | None
    after_seconds: float
    retry_after_seconds: float | None = None


class Behaviour(Protocol):
    """`in_flight` counts the request itself."""

    def reply(self, now: float, in_flight: int) -> Reply: ...


def _ok(seconds: float) -> Reply:
    return Reply(status=204, after_seconds=seconds)


NO_ANSWER: Final = Reply(status=None, after_seconds=TIMEOUT_SECONDS)


@dataclass
class Collapsing:
    """Bears `capacity` at a time; beyond it each request costs all of them more than it brings, and
    at twice as many it refuses.
    """

    capacity: int = 20
    seconds: float = 0.05
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    # it is the same at all times
    def reply(self, now: float, in_flight: int) -> Reply:  # noqa: ARG002
        if in_flight > 2 * self.capacity:
            return Reply(status=503, after_seconds=0.2)
        load = max(1.0, in_flight / self.capacity)
        return _ok(self.seconds * load * load * self.chance.uniform(1 - JITTER, 1 + JITTER))


@dataclass
class Sometimes:
    """Behaves as `usual`, but as `other` while `when` says so of the time."""

    usual: Behaviour
    other: Behaviour
    when: Callable[[float], bool]

    def reply(self, now: float, in_flight: int) -> Reply:
        return (self.other if self.when(now) else self.usual).reply(now, in_flight)


@dataclass
class Slow:
    """Takes its time, whatever it is asked."""

    seconds: float = 2.0
    chance: random.Random = field(default_factory=lambda: random.Random(2))

    # load does not matter to it
    def reply(self, now: float, in_flight: int) -> Reply:  # noqa: ARG002
        return _ok(self.seconds * self.chance.uniform(1 - JITTER, 1 + JITTER))


@dataclass
class Dead:
    """Takes connections and never answers."""

    def reply(self, now: float, in_flight: int) -> Reply:  # noqa: ARG002 - nothing matters to it
        return NO_ANSWER


@dataclass
class Broken:
    """Answers 503 at once."""

    def reply(self, now: float, in_flight: int) -> Reply:  # noqa: ARG002 - nothing matters to it
        return Reply(status=503, after_seconds=0.01)


@dataclass
class RateLimited:
    """Takes `per_second` and answers 429 with Retry-After beyond."""

    per_second: float = 50.0
    retry_after_seconds: float = 1.0
    _tokens: float = 50.0
    _at: float = 0.0

    # it counts requests, not connections
    def reply(self, now: float, in_flight: int) -> Reply:  # noqa: ARG002
        self._tokens = min(self.per_second, self._tokens + (now - self._at) * self.per_second)
        self._at = now
        if self._tokens < 1:
            return Reply(
                status=429, after_seconds=0.01, retry_after_seconds=self.retry_after_seconds
            )
        self._tokens -= 1
        return _ok(0.02)


@dataclass
class Bursty:
    """Gathers requests and answers all of them together, every `every_seconds`."""

    every_seconds: float = 0.25

    # a batch takes as many as there are
    def reply(self, now: float, in_flight: int) -> Reply:  # noqa: ARG002
        return _ok(self.every_seconds - now % self.every_seconds + 0.005)


@dataclass
class Freezing:
    """A receiver like `usual`, but from `at` everything stands still for `for_seconds`: what is
    under way ends that much later.
    """

    usual: Behaviour
    at: float
    for_seconds: float = 1.0

    def reply(self, now: float, in_flight: int) -> Reply:
        usual = self.usual.reply(now, in_flight)
        thawed = self.at + self.for_seconds
        if self.at <= now < thawed:
            return replace(usual, after_seconds=thawed - now + usual.after_seconds)
        if now < self.at < now + usual.after_seconds:
            return replace(usual, after_seconds=usual.after_seconds + self.for_seconds)
        return usual

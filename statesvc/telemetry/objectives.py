"""The promises as shares to keep within a time bound. Alert rules and the console use them.

Each process counts by minute; `objective_minutes` writes the counts. No state is global: a process
has one `ObjectiveCounts`, and recording costs less than a microsecond.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from opentelemetry.metrics import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """`share` of all must be kept; `seconds`: kept means within this time; None:
    kept is said with each.
    """

    name: str
    share: float
    seconds: float | None = None


ACK_LATENCY: Final = Objective(name="ack_latency", share=0.99, seconds=0.1)
ACK_AVAILABILITY: Final = Objective(name="ack_availability", share=0.9995)
LAG: Final = Objective(name="lag", share=0.999, seconds=120.0)
FIRST_ATTEMPT: Final = Objective(name="first_attempt", share=0.99, seconds=10.0)
SEALING: Final = Objective(name="sealing", share=0.999, seconds=60.0)
OBJECTIVES: Final = (ACK_LATENCY, ACK_AVAILABILITY, LAG, FIRST_ATTEMPT, SEALING)

# Upper bounds in seconds, from a millisecond to an hour; longer times count in the last.
BOUNDS: Final = tuple(0.001 * 1.6**step for step in range(33))


@dataclass(slots=True)
class MinuteCount:
    """Counts of a process for an objective in a minute. `counts`: by bound; empty if not timed."""

    kept: int = 0
    missed: int = 0
    counts: list[int] = field(default_factory=list)

    def add(self, other: "MinuteCount") -> None:
        self.kept += other.kept
        self.missed += other.missed
        if other.counts:
            mine = self.counts or [0] * len(BOUNDS)
            self.counts = [a + b for a, b in zip(mine, other.counts, strict=True)]

    @property
    def total(self) -> int:
        return self.kept + self.missed

    def quantile(self, share: float) -> float | None:
        """Return the time that `share` of them took at most, between two bounds as if they were
        spread evenly; None without any.
        """
        total = sum(self.counts)
        if not total:
            return None
        rank, below = share * total, 0
        for index, count in enumerate(self.counts):
            if count and below + count >= rank:
                lower = BOUNDS[index - 1] if index else 0.0
                return lower + (BOUNDS[index] - lower) * (rank - below) / count
            below += count
        return BOUNDS[-1]


class ObjectiveCounts:
    """Counts of a process that are not written yet, by minute (since 1970) and objective."""

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._counts: dict[tuple[int, str], MinuteCount] = {}

    def timed(self, objective: Objective, seconds: float) -> None:
        count = self._count(objective)
        if not count.counts:
            count.counts = [0] * len(BOUNDS)
        count.counts[min(bisect_left(BOUNDS, seconds), len(BOUNDS) - 1)] += 1
        if objective.seconds is None or seconds <= objective.seconds:
            count.kept += 1
        else:
            count.missed += 1

    def counted(self, objective: Objective, *, is_kept: bool) -> None:
        count = self._count(objective)
        if is_kept:
            count.kept += 1
        else:
            count.missed += 1

    def take(self) -> dict[tuple[int, str], MinuteCount]:
        taken, self._counts = self._counts, {}
        return taken

    def put_back(self, counts: Mapping[tuple[int, str], MinuteCount], *, minutes_max: int) -> None:
        """Take back counts that could not be written, unless they are older than `minutes_max`."""
        oldest = int(self._now()) // 60 - minutes_max
        for key, count in counts.items():
            if key[0] >= oldest:
                self._counts.setdefault(key, MinuteCount()).add(count)

    def _count(self, objective: Objective) -> MinuteCount:
        key = int(self._now()) // 60, objective.name
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = MinuteCount()
        return count


class ObjectiveHistogram:
    """A histogram that also counts its values for objectives, as `count` decides."""

    def __init__(
        self, name: str, histogram: Histogram, count: Callable[[float, Mapping[str, str]], None]
    ) -> None:
        self.name = name
        self._histogram = histogram
        self._count = count

    def record(self, amount: float, attributes: Mapping[str, str] | None = None) -> None:
        self._histogram.record(amount, attributes)
        self._count(amount, attributes or {})


def count_acknowledgement(
    counts: ObjectiveCounts, seconds: float, attributes: Mapping[str, str]
) -> None:
    """Count the answer to a push; a push with a sender's error does not count."""
    outcome = attributes.get("outcome")
    if outcome in {"accepted", "duplicate", "error"}:
        counts.counted(ACK_AVAILABILITY, is_kept=outcome != "error")
    if outcome in {"accepted", "duplicate"}:
        counts.timed(ACK_LATENCY, seconds)


def count_first_attempt(
    counts: ObjectiveCounts, seconds: float, attributes: Mapping[str, str]
) -> None:
    """Count the first try at a notification; where the receiver has no room, the wait is its
    own.
    """
    if attributes.get("state") == "ready":
        counts.timed(FIRST_ATTEMPT, seconds)

"""Limit of a receiver's concurrent requests: additive increase, multiplicative decrease.

As in Vector's ARC, the measure is the receiver's latency. Requests that begin within about one
round trip are a cohort; when nine tenths of it have been answered the limit moves once: up by one
when it was reached and answers came as fast as usual, down by a tenth when they were slower than
their usual spread allows. It is halved at once when the receiver signals overload. Requests that
began before the last move do not count; those in progress count with their time so far, because
early answers alone are the fast ones.

The usual latency is measured with a small cohort: now and then a cohort is half as large. A mean of
all would learn our own queue as normal, and creep up until the receiver breaks. If half as many are
no faster, the receiver itself is slower, and that is the new usual.
"""

import math
from dataclasses import dataclass
from typing import Final

from statesvc.delivery.limiter.signal import Signal

# The first window runs at half of it: it is a measure.
INITIAL: Final = 4
# A receiver that bears more gets 64 at a time; the process's quarter bounds it too.
MAXIMUM: Final = 64
SLOWER_FACTOR: Final = 0.9
OVERLOADED_FACTOR: Final = 0.5
MEASURING_FACTOR: Final = 0.5
DEVIATIONS: Final = 2.5
SPREAD_SHARE_MIN: Final = 0.1
# A smaller increase is noise, however even the latency was before.
SPREAD_SECONDS_MIN: Final = 0.005
# Slower by more than this is not usual, however irregular it was: over a window's many answers
# chance averages out.
SPREAD_SHARE_MAX: Final = 0.5
WEIGHT: Final = 0.4
# A measure counts at most as this many times the mean: a pause of the receiver is an outlier.
OUTLIER_FACTOR: Final = 2.0
# Half the cohort, but still more than this of the latency: it is not our cohort that makes it.
OWN_REASONS_SHARE: Final = 0.8
ANSWERED_SHARE: Final = 0.9
COHORTS_BETWEEN_MEASURES: Final = 20
COHORTS_WITHOUT_MEASURE_MAX: Final = 40


class _Usual:
    """Exponentially weighted mean and variance of the measured windows, in seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.variance = 0.0

    def update(self, seconds: float) -> None:
        difference = min(seconds, OUTLIER_FACTOR * self.seconds) - self.seconds
        self.seconds += WEIGHT * difference
        # the incremental form of an exponentially weighted variance: no samples are kept
        self.variance = (1 - WEIGHT) * (self.variance + WEIGHT * difference * difference)

    def bearable(self, count: int) -> float:
        """Return the slowest average of `count` answers that is still usual."""
        at_most = self.seconds * max(SPREAD_SHARE_MAX, DEVIATIONS / math.sqrt(count))
        at_least = max(SPREAD_SHARE_MIN * self.seconds, SPREAD_SECONDS_MIN)
        return self.seconds + max(at_least, min(at_most, DEVIATIONS * math.sqrt(self.variance)))


@dataclass(frozen=True, slots=True)
class CohortMark:
    """Crowd that an attempt belongs to; not `counts`: it began too late to be waited for."""

    cohort: int
    counts: bool


@dataclass(slots=True)
class _Cohort:
    """Requests that began at one limit. `until`: later ones are not waited for."""

    number: int
    until: float
    is_full: bool = False
    under_way: int = 0
    began_sum: float = 0.0
    """Sum of the start times of those in progress."""
    answered: int = 0
    seconds_sum: float = 0.0

    @property
    def size(self) -> int:
        return self.under_way + self.answered

    def average(self, now: float) -> float:
        """Return the seconds to an answer, of those still under way as many as have passed."""
        return (self.seconds_sum + self.under_way * now - self.began_sum) / self.size


class Concurrency:
    """The limit of a receiver, between 1 and `maximum`."""

    def __init__(self, *, maximum: int = MAXIMUM) -> None:
        self._maximum = float(max(1, min(maximum, MAXIMUM)))
        self._limit = min(float(INITIAL), self._maximum)
        self._measuring: float | None = math.inf
        """While a cohort is half as large: the latency that gave reason to doubt, infinite
        for a routine measure.
        """
        self._usual: _Usual | None = None
        self._since_measure = 0
        self._cohort = _Cohort(0, math.inf)

    @property
    def limit(self) -> int:
        return max(
            1, int(self._limit if self._measuring is None else self._limit * MEASURING_FACTOR)
        )

    @property
    def level(self) -> int:
        return int(self._limit)

    @property
    def mean_latency_seconds(self) -> float | None:
        """Mean latency of answers that took the notification, while few are under way;
        None before the first.
        """
        return None if self._usual is None else self._usual.seconds

    def started(self, in_flight: int, *, now: float) -> CohortMark:
        cohort = self._cohort
        # from its first request: a cohort that waits for work must not end before it began
        if not cohort.size and self._usual is not None:
            cohort.until = now + self._usual.seconds
        cohort.is_full = cohort.is_full or in_flight >= self.limit
        # at least as many as the limit, or a slow trickle would never be judged
        counts = now < cohort.until or cohort.size < self.limit
        if counts:
            cohort.under_way += 1
            cohort.began_sum += now
        return CohortMark(cohort.number, counts)

    def finished(
        self,
        mark: CohortMark,
        signal: Signal | None,
        *,
        started_at: float,
        now: float,
        latency_seconds: float,
    ) -> None:
        """Note the end of a request. No signal: it was broken off."""
        cohort = self._cohort
        # the limit has moved since it began
        if mark.cohort != cohort.number:
            return
        if mark.counts:
            cohort.under_way -= 1
            cohort.began_sum -= started_at
        if signal is Signal.OVERLOADED:
            # an overloaded receiver tells nothing about its usual latency
            self._measuring = None
            self._next(max(1.0, self._limit * OVERLOADED_FACTOR), now)
            return
        if signal is Signal.OK and mark.counts:
            cohort.answered += 1
            cohort.seconds_sum += latency_seconds
            cohort.until = min(cohort.until, now) if self._usual is None else cohort.until
        # not all: one request that hangs until its timeout would stop every adjustment
        if (
            cohort.answered
            and now >= cohort.until
            and cohort.answered >= ANSWERED_SHARE * cohort.size
        ):
            self._judge(cohort, now)

    def _judge(self, cohort: _Cohort, now: float) -> None:
        average = cohort.average(now)
        usual = self._usual = self._usual or _Usual(average)
        is_slower = average > usual.bearable(cohort.size)
        if self._measuring is not None:
            self._measured(usual, average, self._measuring, now)
        # a single request is its own measure: half of it there is not
        elif self.limit == 1:
            usual.update(average)
            self._next(self._limit + (cohort.is_full and not is_slower), now)
        elif is_slower and self._since_measure >= COHORTS_BETWEEN_MEASURES:
            self._measuring = average
            self._next(self._limit, now)
        elif is_slower:
            self._next(max(1.0, self._limit * SLOWER_FACTOR), now)
        elif self._since_measure >= COHORTS_WITHOUT_MEASURE_MAX and cohort.is_full:
            self._measuring = math.inf
            self._next(self._limit, now)
        else:
            self._next(self._limit + cohort.is_full, now)

    def _measured(self, usual: _Usual, average: float, doubt: float, now: float) -> None:
        limit = self._limit
        # with half the cohort hardly faster: the receiver itself has become slower
        if average >= OWN_REASONS_SHARE * doubt:
            usual.seconds = average
        else:
            usual.update(average)
            # the doubt was right: the cohort made it slow, so it becomes smaller
            limit *= 1 if math.isinf(doubt) else SLOWER_FACTOR
        self._measuring, self._since_measure = None, 0
        self._next(max(1.0, limit), now)

    def _next(self, limit: float, now: float) -> None:
        self._limit = min(self._maximum, limit)
        self._since_measure += 1
        until = math.inf if self._usual is None else now + self._usual.seconds
        self._cohort = _Cohort(self._cohort.number + 1, until)

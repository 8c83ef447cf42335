"""How many requests a receiver bears at a time: additive increase, multiplicative decrease, as in Vector's ARC.

The receiver's own latency is the measure. A window lasts about two round trips, and only attempts that began in it are heard, because
what was under way before tells of the former limit. At its end the limit moves once: up by one when it was reached and answers came
as fast as usual, down by a tenth when they were slower than their usual spread allows; down by half at once when the receiver said or
showed that it is overloaded.

What is usual is measured where our own crowd is small: now and then one window runs at half the limit. A mean of all windows would
learn the queue that we make as normal, and creep up until the receiver breaks. If half as many are no faster, then the receiver is
slower for reasons of its own, and that is the new usual.
"""

import math
from typing import Final

from statesvc.notifier.limiter.signal import Signal

INITIAL: Final = 4
"""The first window runs at half of it: it is a measure."""
MAXIMUM: Final = 64
"""A receiver that bears more is told at 64 at a time; the process's quarter bounds it too."""
SLOWER_FACTOR: Final = 0.9
OVERLOADED_FACTOR: Final = 0.5
MEASURING_FACTOR: Final = 0.5
DEVIATIONS: Final = 2.5
SPREAD_SHARE_MIN: Final = 0.1
SPREAD_SECONDS_MIN: Final = 0.005
"""Slower by less than one of these is noise, however even the latency was before."""
WEIGHT: Final = 0.4
OUTLIER_FACTOR: Final = 2.0
"""A measure counts at most as so many times the mean: one that met a pause of the receiver says little."""
OWN_REASONS_SHARE: Final = 0.8
"""Half the crowd, but still more than this of the latency: it is not our crowd that makes it."""
WINDOW_ROUND_TRIPS: Final = 2.0
WINDOWS_BETWEEN_MEASURES: Final = 20
WINDOWS_WITHOUT_MEASURE_MAX: Final = 40


class _Usual:
    """Exponentially weighted mean and variance of the measured windows, in seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.variance = 0.0

    def update(self, seconds: float) -> None:
        difference = min(seconds, OUTLIER_FACTOR * self.seconds) - self.seconds
        self.seconds += WEIGHT * difference
        self.variance = (1 - WEIGHT) * (self.variance + WEIGHT * difference * difference)

    @property
    def bearable(self) -> float:
        """The slowest that is still usual."""
        return self.seconds + max(DEVIATIONS * math.sqrt(self.variance), SPREAD_SHARE_MIN * self.seconds, SPREAD_SECONDS_MIN)


class Concurrency:
    """The limit of one receiver, between 1 and `maximum`."""

    def __init__(self, *, maximum: int = MAXIMUM) -> None:
        self._maximum = float(max(1, min(maximum, MAXIMUM)))
        self._limit = min(float(INITIAL), self._maximum)
        self._measuring: float | None = math.inf
        """While a window runs at half the limit: the latency that gave reason to doubt, infinite for a routine measure."""
        self._usual: _Usual | None = None
        self._windows = 0
        """Since the last measure."""
        self._began_at = -math.inf
        self._reached = False
        self._sum, self._count = 0.0, 0

    @property
    def limit(self) -> int:
        """How many may be in flight."""
        return max(1, int(self._limit if self._measuring is None else self._limit * MEASURING_FACTOR))

    @property
    def level(self) -> int:
        """The limit between measures."""
        return int(self._limit)

    @property
    def mean_latency_seconds(self) -> float | None:
        """Of answers that took the notification, while few are under way; None before the first."""
        return None if self._usual is None else self._usual.seconds

    def started(self, in_flight: int) -> None:
        """One more is under way, `in_flight` with it."""
        self._reached = self._reached or in_flight >= self.limit

    def finished(self, signal: Signal, *, started_at: float, now: float, latency_seconds: float) -> None:
        """One ended."""
        if started_at < self._began_at:
            return
        if signal is Signal.OVERLOADED:
            self._measuring = None
            self._begin(max(1.0, self._limit * OVERLOADED_FACTOR), now)
        elif signal is Signal.OK:
            self._sum += latency_seconds
            self._count += 1
            average = self._sum / self._count
            if self._usual is None:
                self._usual, self._began_at = _Usual(average), started_at
            if now >= self._began_at + WINDOW_ROUND_TRIPS * self._usual.seconds:
                self._judge(self._usual, average, now)

    def _judge(self, usual: _Usual, average: float, now: float) -> None:
        if self._measuring is not None or self.limit == 1:
            self._measured(usual, average, now)
        elif average > usual.bearable:
            if self._windows >= WINDOWS_BETWEEN_MEASURES:
                self._measuring = average
                self._begin(self._limit, now)
            else:
                self._begin(max(1.0, self._limit * SLOWER_FACTOR), now)
        elif self._windows >= WINDOWS_WITHOUT_MEASURE_MAX and self._reached:
            self._measuring = math.inf
            self._begin(self._limit, now)
        else:
            self._begin(self._limit + 1 if self._reached else self._limit, now)

    def _measured(self, usual: _Usual, average: float, now: float) -> None:
        doubt, self._measuring, self._windows = self._measuring, None, 0
        limit = self._limit
        if doubt is None:
            limit += self._reached and average <= usual.bearable
            usual.update(average)
        elif math.isinf(doubt):
            usual.update(average)
        elif average >= OWN_REASONS_SHARE * doubt:
            usual.seconds = average
        else:
            usual.update(average)
            limit *= SLOWER_FACTOR
        self._begin(max(1.0, limit), now)

    def _begin(self, limit: float, now: float) -> None:
        """The next window."""
        self._limit = min(self._maximum, limit)
        self._began_at = now
        self._windows += 1
        self._reached = False
        self._sum, self._count = 0.0, 0

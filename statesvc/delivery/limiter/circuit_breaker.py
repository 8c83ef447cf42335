"""Stops asking a receiver that is down: closed, open, half-open with a single probe.

```
closed --(it is down)--> open --(1 s, half as long again each time, up to 15 min)--> half-open --(the probe was taken)--> closed
                          ^------------------------------------ it failed ---------------+
```
Down: ten attempts in a row failed, over a second at least; or of the last hundred within five
minutes (ten at least) seven in ten did. Both count attempts, so a busy receiver's good past does
not hide that it is down now. While the breaker is open no attempt is counted: notifications keep
their tries for when the receiver is back.
"""

from collections import deque
from enum import StrEnum
from typing import Final

WINDOW_ATTEMPTS: Final = 100
WINDOW_SECONDS: Final = 300.0
ATTEMPTS_MIN: Final = 10
# A short failure that hits all attempts in progress is not an outage.
IN_A_ROW_SECONDS_MIN: Final = 1.0
FAILED_SHARE: Final = 0.7
OPEN_SECONDS: Final = 1.0
OPEN_SECONDS_MAX: Final = 900.0
# Two readings of the database's clock may be so far from their order.
CLOCK_SECONDS_MAX: Final = 5.0
# A receiver that was down for so long is found to be back within a third of that again.
LONGER_FACTOR: Final = 1.5


class BreakerState(StrEnum):
    """The words that the API and the metrics use."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CircuitBreaker:
    def __init__(self) -> None:
        self.state = BreakerState.CLOSED
        self.open_until: float | None = None
        """Time at which a probe may be sent; None while closed."""
        self._window: deque[tuple[float, bool]] = deque(maxlen=WINDOW_ATTEMPTS)
        self._failed_in_a_row = 0
        self._well_at = float("-inf")
        self._open_seconds = OPEN_SECONDS
        self._changed_at = float("-inf")

    def refuses_until(self, now: float) -> float | None:
        """Return when a probe may be sent; None: at once.

        A future time counts as past: a clock was ahead.
        """
        if self.open_until is None or self._changed_at > now + CLOCK_SECONDS_MAX:
            return None
        return self.open_until

    def probing(self) -> None:
        self.state = BreakerState.HALF_OPEN

    def unprobed(self) -> None:
        """Note that the probe was never sent: the next attempt is it."""
        self.state = BreakerState.OPEN

    def finished(self, *, failed: bool, is_probe: bool, started_at: float, now: float) -> None:
        """Note the end of an attempt. Only the probe ends an open state."""
        if is_probe:
            if failed:
                self._open_seconds = min(OPEN_SECONDS_MAX, self._open_seconds * LONGER_FACTOR)
                self._open(now)
            else:
                self.state, self.open_until, self._changed_at = BreakerState.CLOSED, None, now
                self._well_at = now
        # attempts that began before the last change are about the receiver as it was then
        elif self.state is BreakerState.CLOSED and started_at >= self._changed_at:
            self._count(failed=failed, now=now)
            if failed and self._is_down(now):
                # a new outage begins short; only probes that fail make it longer
                self._open_seconds = OPEN_SECONDS
                self._open(now)

    def _count(self, *, failed: bool, now: float) -> None:
        self._window.append((now, failed))
        while self._window[0][0] < now - WINDOW_SECONDS:
            self._window.popleft()
        if failed:
            self._failed_in_a_row += 1
        else:
            self._failed_in_a_row, self._well_at = 0, now

    def _is_down(self, now: float) -> bool:
        # both: at high concurrency ten attempts fail within one hiccup
        if self._failed_in_a_row >= ATTEMPTS_MIN and now >= self._well_at + IN_A_ROW_SECONDS_MIN:
            return True
        failures = sum(failed for _, failed in self._window)
        return len(self._window) >= ATTEMPTS_MIN and failures >= FAILED_SHARE * len(self._window)

    def _open(self, now: float) -> None:
        # what failed before is judged: after the probe a single failure must not open it again
        self._window.clear()
        self._failed_in_a_row = 0
        self.state, self.open_until, self._changed_at = (
            BreakerState.OPEN,
            now + self._open_seconds,
            now,
        )

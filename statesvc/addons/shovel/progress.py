"""Progress of a transfer: rate, what remains, and when it may be done. Pure; monotonic seconds are arguments."""

from collections import deque
from typing import Final

_WINDOW_SECONDS: Final = 20.0


class TransferProgress:
    """`remaining` is what waited at the source when it was last asked."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, int]] = deque()
        self.done = 0
        self.remaining: int | None = None

    def update(self, done: int, *, now: float) -> None:
        """Set how many are done by now; a time's readings beyond the window are forgotten."""
        self.done = done
        self._readings.append((now, done))
        while now - self._readings[0][0] > _WINDOW_SECONDS and len(self._readings) > 2:
            self._readings.popleft()

    @property
    def per_second(self) -> float:
        """Over the last seconds."""
        if len(self._readings) < 2:
            return 0.0
        (began, before), (ended, after) = self._readings[0], self._readings[-1]
        return (after - before) / max(ended - began, 0.001)

    def words(self) -> str:
        """Return the text behind the bar."""
        rate = self.per_second
        if self.remaining is None:
            return f"messages, {rate:,.0f}/s"
        estimate = (
            f", about {_duration(self.remaining / rate)}" if rate > 0 and self.remaining else ""
        )
        return f"messages, {rate:,.0f}/s, {self.remaining:,} remain{estimate}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes:02} min"
        if hours
        else f"{minutes} min {rest:02} s"
        if minutes
        else f"{rest} s"
    )

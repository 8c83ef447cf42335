"""How fast a replay goes on, and when it stops: canary, rate, bound on what waits, share of failures. Pure; time is an argument."""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

WINDOW: Final = 100
"""The share of failures is taken of the last so many verdicts, or a few more."""
JUDGED_MIN: Final = 20
"""Without so many verdicts a share says nothing."""


class Ended(StrEnum):
    """How a run ended. Stable words; they stand in the log."""

    DONE = "done"
    CANARY_FAILED = "canary_failed"
    ERRORS_ROSE = "errors_rose"
    NO_VERDICTS = "no_verdicts"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a run keeps to.

    `canary`: so many first; the rest only when their verdicts are good enough (0: no canary). `per_second` None: as fast as it goes.
    `stop_at_percent`: a larger share of failures stops the run. `waiting_max`: at most so many without a verdict at a time.
    """

    canary: int = 20
    per_second: float | None = 500.0
    stop_at_percent: float = 5.0
    waiting_max: int = 2_000


class Pace:
    """Counts what went out and what came of it."""

    def __init__(self, bounds: Bounds) -> None:
        self.released = 0
        self.settled = 0
        self.failed = 0
        self._bounds = bounds
        self._recent: deque[tuple[int, int]] = deque()
        self._open_since: float | None = None if bounds.canary else 0.0

    @property
    def waiting(self) -> int:
        """Released, without a verdict yet."""
        return self.released - self.settled - self.failed

    @property
    def is_open(self) -> bool:
        """The canary came back well, or there is none."""
        return self._open_since is not None

    def allowance(self, elapsed_seconds: float) -> int:
        """How many more may go out now, `elapsed_seconds` after the start."""
        bounds = self._bounds
        if self._open_since is None:
            return max(0, bounds.canary - self.released)
        allowed = bounds.waiting_max - self.waiting
        if bounds.per_second is not None:
            earned = int(bounds.per_second * (elapsed_seconds - self._open_since))
            allowed = min(allowed, earned + bounds.canary - self.released)
        return max(0, allowed)

    def release(self, count: int) -> None:
        """So many went out."""
        self.released += count

    def judge(self, elapsed_seconds: float, *, settled: int, failed: int) -> None:
        """Takes in verdicts."""
        self.settled += settled
        self.failed += failed
        if self._open_since is None:
            if self.settled + self.failed >= self._bounds.canary:
                self._open_since = elapsed_seconds
        elif settled + failed:
            self._recent.append((settled + failed, failed))
            while sum(judged for judged, _ in self._recent) - self._recent[0][0] >= WINDOW:
                self._recent.popleft()

    def stop(self) -> Ended | None:
        """Why to stop; None: go on."""
        bounds = self._bounds
        if self._open_since is None or not self._recent:
            return Ended.CANARY_FAILED if bounds.canary and self.failed * 100 > bounds.stop_at_percent * bounds.canary else None
        judged, failed = (sum(each) for each in zip(*self._recent, strict=True))
        return Ended.ERRORS_ROSE if judged >= JUDGED_MIN and failed * 100 > bounds.stop_at_percent * judged else None

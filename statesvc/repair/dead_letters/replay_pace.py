"""Pace of a replay, and when it stops: canary, rate, bound on what waits, share of failures. Pure; time is an argument."""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

WINDOW: Final = 100
"""The share of failures is taken of at least this many of the last verdicts."""
JUDGED_MIN: Final = 20
"""With fewer verdicts a share means nothing."""


class ReplayEnd(StrEnum):
    """End of a run, or of one call of it. Stable words; they are in the log."""

    DONE = "done"
    LIMIT_REACHED = "limit_reached"
    """Enough for one call is done; more remains."""
    CANARY_FAILED = "canary_failed"
    ERRORS_ROSE = "errors_rose"
    NO_VERDICTS = "no_verdicts"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayLimits:
    """The limits of a run.

    `canary`: how many go first; the rest only when their verdicts are good enough (0: no canary). `per_second` None: no limit.
    `stop_at_percent`: a larger share of failures stops the run. `waiting_max`: how many may be without a verdict at a time.
    """

    canary: int = 20
    per_second: float | None = 500.0
    stop_at_percent: float = 5.0
    waiting_max: int = 2_000


class ReplayPace:
    """Counts what was released and what became of it."""

    def __init__(self, limits: ReplayLimits) -> None:
        self.released = 0
        self.settled = 0
        self.failed = 0
        self._limits = limits
        self._recent: deque[tuple[int, int]] = deque()
        self._open_since: float | None = None if limits.canary else 0.0
        self._released_before = 0

    @property
    def waiting(self) -> int:
        """Released, without a verdict yet."""
        return self.released - self.settled - self.failed

    @property
    def is_open(self) -> bool:
        """The canary passed, or there is none."""
        return self._open_since is not None

    def resume(self, *, settled: int, failed: int, waiting: int, canary_passed: bool) -> None:
        """Take in what earlier calls of the run released, and what became of it."""
        self.released = self._released_before = settled + failed + waiting
        if canary_passed:
            self._open_since = 0.0
        self.judge(0.0, settled=settled, failed=failed)

    def allowance(self, elapsed_seconds: float) -> int:
        """Return how many more may be released now, `elapsed_seconds` after the start."""
        limits = self._limits
        if self._open_since is None:
            return max(0, limits.canary - self.released)
        allowed = limits.waiting_max - self.waiting
        if limits.per_second is not None:
            earned = int(limits.per_second * (elapsed_seconds - self._open_since))
            allowed = min(allowed, earned + limits.canary - (self.released - self._released_before))
        return max(0, allowed)

    def release(self, count: int) -> None:
        """Count what was released."""
        self.released += count

    def judge(self, elapsed_seconds: float, *, settled: int, failed: int) -> None:
        """Take in verdicts."""
        self.settled += settled
        self.failed += failed
        if self._open_since is None:
            if self.settled + self.failed >= self._limits.canary:
                self._open_since = elapsed_seconds
        elif settled + failed:
            self._recent.append((settled + failed, failed))
            while sum(judged for judged, _ in self._recent) - self._recent[0][0] >= WINDOW:
                self._recent.popleft()

    def stop(self) -> ReplayEnd | None:
        """Return why to stop; None: go on."""
        limits = self._limits
        if self._open_since is None or not self._recent:
            return (
                ReplayEnd.CANARY_FAILED
                if limits.canary and self.failed * 100 > limits.stop_at_percent * limits.canary
                else None
            )
        judged, failed = (sum(each) for each in zip(*self._recent, strict=True))
        return (
            ReplayEnd.ERRORS_ROSE
            if judged >= JUDGED_MIN and failed * 100 > limits.stop_at_percent * judged
            else None
        )

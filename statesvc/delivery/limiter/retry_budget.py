"""Bounds failing retries: a fifth of the first attempts, plus ten a second.

A receiver that starts to fail would otherwise get every notification several times, just when it
can take least. A retry that succeeds is refunded: once the receiver is well again, its backlog goes
out as fast as it can take it.
"""

from typing import Final

SHARE: Final = 0.2
FLOOR_PER_SECOND: Final = 10.0
# Retries that may follow each other at once after a quiet time.
BALANCE_MAX: Final = 20.0


class RetryBudget:
    def __init__(self) -> None:
        self._balance = BALANCE_MAX
        self._counted_at: float | None = None

    def available(self, now: float) -> int:
        self._accrue(now)
        return int(self._balance)

    def seconds_until_next(self, now: float) -> float:
        """Return the seconds until another retry may start without a first attempt; 0: now."""
        self._accrue(now)
        return max(0.0, (1.0 - self._balance) / FLOOR_PER_SECOND)

    def first(self) -> None:
        self._balance = min(BALANCE_MAX, self._balance + SHARE)

    def retry(self, now: float) -> None:
        """Note that a retry starts.

        Never refused: claimed retries are honoured, the next claim waits.
        """
        self._accrue(now)
        self._balance -= 1.0

    def taken(self) -> None:
        self._balance = min(BALANCE_MAX, self._balance + 1.0)

    def _accrue(self, now: float) -> None:
        if self._counted_at is not None and now > self._counted_at:
            self._balance = min(
                BALANCE_MAX, self._balance + FLOOR_PER_SECOND * (now - self._counted_at)
            )
        self._counted_at = now

"""How often the look-out of a worker with a flood in hand looks for others' messages. Pure: the time is an argument.

Such a look is a claim of its own, and what it brings a small batch, which costs far more a message than a big one. So looks come out of a
bucket: a few at once, and in the long run no more than the flood can bear; what comes beyond it is claimed when a slot is free.
"""

from dataclasses import dataclass
from typing import Final

LOOKS_AT_ONCE: Final = 5.0
LOOKS_PER_SECOND: Final = 25.0


@dataclass(slots=True)
class Looks:
    """Times are seconds of a monotonic clock."""

    left: float = LOOKS_AT_ONCE
    counted_at: float = 0.0

    def pause(self, now: float) -> float:
        """How long to wait before the next look."""
        self._count(now)
        return max(0.0, (1.0 - self.left) / LOOKS_PER_SECOND)

    def looked(self, now: float) -> None:
        """One was had."""
        self._count(now)
        self.left -= 1.0

    def _count(self, now: float) -> None:
        self.left = min(LOOKS_AT_ONCE, self.left + (now - self.counted_at) * LOOKS_PER_SECOND)
        self.counted_at = now

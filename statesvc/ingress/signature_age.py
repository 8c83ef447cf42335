"""Age limit of signatures that state their time.

A stamp is checked only after the signature over it fits. The bound is wide: carriers do not
document whether they stamp a retry again, and for some a refusal is final. A replayed body has no
effect, while a refused scan would be lost.
"""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

# Bound of how far a carrier's clock may be ahead of ours: ShipEngine's documents name five
# minutes.
AHEAD_SECONDS_MAX: Final = 300.0
_MILLISECONDS_FROM: Final = 10**11
_DIGITS_MAX: Final = 15


class SignatureAge:
    """The bound, by the wall clock of this process."""

    def __init__(self, seconds_max: float, *, now: Callable[[], float] = time.time) -> None:
        self._seconds_max = seconds_max
        self._now = now

    def is_accepted(self, stamp: str) -> bool:
        """Return False for a stamp that is too old, in the future, or not a time."""
        made_at = seconds_since_1970(stamp)
        if made_at is None:
            return False
        return -AHEAD_SECONDS_MAX <= self._now() - made_at <= self._seconds_max


def seconds_since_1970(stamp: str) -> float | None:
    """Parse a stamp in seconds, in milliseconds, or in RFC 3339 with its offset; None for
    another.
    """
    if stamp.isascii() and stamp.isdigit():
        if len(stamp) > _DIGITS_MAX:
            return None
        number = int(stamp)
        return number / 1000 if number >= _MILLISECONDS_FROM else float(number)
    try:
        instant = datetime.fromisoformat(stamp)
        return instant.timestamp() if instant.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None

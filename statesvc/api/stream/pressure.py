"""Whether this process has no time for streams: they are the first to go, so that webhooks go on being acknowledged. Pure.

Strained is who was late, or was hindered, at every look for two seconds; a pause of the garbage collector is no strain.
"""

from typing import Final

LOOK_SECONDS: Final = 0.25
LATE_SECONDS: Final = 0.1
"""The event loop ran this late: an acknowledgement waits as long."""
LOOKS: Final = 8
REST_SECONDS: Final = 10.0
"""After shedding nobody is let in for so long."""


class Strain:
    """Told of each look; times are those of one monotonic clock."""

    def __init__(self) -> None:
        self._bad_looks = 0
        self._rests_until = float("-inf")

    def look(self, *, late_seconds: float, hindered: bool, now: float) -> bool:
        """True: shed all streams now."""
        self._bad_looks = self._bad_looks + 1 if hindered or late_seconds >= LATE_SECONDS else 0
        if self._bad_looks < LOOKS:
            return False
        self._bad_looks = 0
        self._rests_until = now + REST_SECONDS
        return True

    def rests(self, now: float) -> bool:
        """True: let nobody in."""
        return now < self._rests_until

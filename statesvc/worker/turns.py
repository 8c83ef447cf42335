"""Whose turn it is while there are leases to take over. Pure: the time is an argument.

Messages of a dead worker are taken over one at a time, with nothing else in progress, and one dead worker may have held a thousand.
So the time is halved: a slice of take-overs, then as much for the carriers' lanes, and neither waits for the end of the other.
"""

from dataclasses import dataclass
from typing import Final

SLICE_SECONDS: Final = 0.5


@dataclass(slots=True)
class Turns:
    """Times are seconds of a monotonic clock."""

    slice_began: float | None = None
    lanes_until: float = float("-inf")

    def rescue_first(self, now: float) -> bool:
        """Whether the next claim looks for ended leases before it looks at the lanes."""
        return now >= self.lanes_until

    def rescued(self, *, began: float, ended: float) -> None:
        """A message was taken over and worked on."""
        if self.slice_began is None:
            self.slice_began = began
        if ended - self.slice_began >= SLICE_SECONDS:
            self.lanes_until = ended + (ended - self.slice_began)
            self.slice_began = None

    def served(self) -> None:
        """A claim came from the lanes."""
        self.slice_began = None

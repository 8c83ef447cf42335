"""How much to claim at once, and what of it goes first. Pure: the time is an argument.

A batch that grows with the backlog is cheap for whoever floods, and long for whoever does not: a message of a quiet carrier would wait for
the hundreds before it. So batches grow only while no quiet carrier was seen for some seconds, and what a quiet carrier sent is worked on
apart, ahead of the rest.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from statesvc.inbox.claim import Message

QUIET_SECONDS: Final = 10.0
"""How long batches stay small after a quiet carrier was seen."""
APART_MAX: Final = 16
"""More than this of one carrier in a claim is no longer quiet."""


def apart(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """What quiet carriers sent, and the rest, both in inbox order. Quiet: few messages beside much more of others."""
    counts = Counter(message.carrier_id for message in messages)
    loud = max(counts.values(), default=0)
    quiet = {carrier_id for carrier_id, count in counts.items() if count <= APART_MAX and 4 * count <= loud}
    return [m for m in messages if m.carrier_id in quiet], [m for m in messages if m.carrier_id not in quiet]


@dataclass(slots=True)
class Growth:
    """The size of the next claim, between `least` and `most`. Times are seconds of a monotonic clock."""

    least: int
    most: int
    size: int = 0
    small_until: float = float("-inf")

    def __post_init__(self) -> None:
        self.size = self.least

    def claimed(self, messages: int, *, quiet: bool, now: float) -> None:
        """A claim of `size` brought so many messages, some of a quiet carrier or none."""
        if quiet:
            self.small_until = now + QUIET_SECONDS
        if now < self.small_until:
            self.size = self.least
        elif messages >= self.size:
            self.size = min(self.most, self.size * 2)
        else:
            self.size = max(self.least, self.size // 2)

"""How much to claim at once, and what of it goes first. Pure: times are arguments.

A batch that grows with the backlog is cheap, and long for whoever waits behind it. So it grows until it takes the event loop for
`BATCH_SECONDS`, however many messages that is, and what a quiet carrier sent is worked on apart, ahead of the rest.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from statesvc.inbox.claim import Message

BATCH_SECONDS: Final = 0.1
"""Of the loop's own time. Messages of many events reach it first; those of one event do where processors are scarce."""
APART_MAX: Final = 16
"""More than this of one carrier in a claim is no longer quiet."""
_TELLING: Final = 32
"""A batch of fewer messages says little about what a message costs."""
_LEAST: Final = 16
_NEWEST: Final = 0.3
"""The weight of the newest batch in what a message costs."""


def loud(messages: Sequence[Message]) -> frozenset[str]:
    """Carriers that sent much of it."""
    return frozenset(carrier_id for carrier_id, count in Counter(m.carrier_id for m in messages).items() if count > APART_MAX)


def apart(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """What quiet carriers sent, and the rest, both in inbox order. Quiet: few messages beside much more of others."""
    counts = Counter(message.carrier_id for message in messages)
    loudest = max(counts.values(), default=0)
    quiet = {carrier_id for carrier_id, count in counts.items() if count <= APART_MAX and 4 * count <= loudest}
    return [m for m in messages if m.carrier_id in quiet], [m for m in messages if m.carrier_id not in quiet]


@dataclass(slots=True)
class Growth:
    """The size of the next claim, between `least` and `most`; below `least` where messages are costly."""

    least: int
    most: int
    size: int = 0
    message_seconds: float = 0.0
    """What one message costs the loop, as far as it is known."""

    def __post_init__(self) -> None:
        self.size = self.least

    @property
    def bound(self) -> int:
        """How many messages may take the loop's time of one batch."""
        if not self.message_seconds:
            return self.most
        return min(self.most, max(min(self.least, _LEAST), int(BATCH_SECONDS / self.message_seconds)))

    def worked(self, messages: int, *, loop_seconds: float) -> None:
        """So many messages were worked on in so much of the loop's time."""
        if messages >= min(_TELLING, self.size):
            newest = loop_seconds / messages
            self.message_seconds += (newest - self.message_seconds) * (_NEWEST if self.message_seconds else 1.0)

    def claimed(self, messages: int) -> None:
        """A claim of `size` brought so many messages."""
        wanted = self.size * 2 if messages >= self.size else max(self.least, self.size // 2)
        self.size = min(self.bound, wanted)

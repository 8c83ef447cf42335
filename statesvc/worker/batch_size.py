"""Size of a claim, and which of its messages go first. Pure: times are arguments.

A batch that grows with the backlog is cheap, but messages behind it wait longer. So it grows until
it takes `BATCH_SECONDS` of the event loop, however many messages that is, and messages of quiet
carriers are a batch of their own, ahead of the rest.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from statesvc.queue.claim import Message

# Seconds of the loop's own time. Messages of many events reach it first; single-event messages
# reach it where processors are scarce.
BATCH_SECONDS: Final = 0.04
# A carrier with more messages than this in a claim is not quiet.
QUIET_MESSAGES_MAX: Final = 16
# A smaller claim is a single batch: it is done sooner than two.
SPLIT_MESSAGES_MIN: Final = 64
# A batch of fewer messages is too small to estimate the cost of a message.
_SIGNIFICANT: Final = 32
_LEAST: Final = 16
# Weight of the newest batch in the cost of a message.
_NEWEST_WEIGHT: Final = 0.3


def split_by_volume(messages: Sequence[Message]) -> list[list[Message]]:
    """Return the messages of quiet carriers, then the rest, both in inbox order; an
    empty group is left out.

    Quiet: few messages next to many of others.
    """
    if len(messages) < SPLIT_MESSAGES_MIN:
        return [list(messages)] if messages else []
    counts = Counter(message.carrier_id for message in messages)
    busiest = max(counts.values(), default=0)
    quiet = {
        carrier_id
        for carrier_id, count in counts.items()
        # without the ratio, carriers of a like volume would be split, and each claim be two
        # transactions
        if count <= QUIET_MESSAGES_MAX and 4 * count <= busiest
    }
    parts = (
        [m for m in messages if m.carrier_id in quiet],
        [m for m in messages if m.carrier_id not in quiet],
    )
    return [part for part in parts if part]


@dataclass(slots=True)
class BatchSize:
    """The size of the next claim, between `least` and `most`; below `least` where messages are
    costly.
    """

    least: int
    most: int
    size: int = 0
    message_seconds: float = 0.0
    """Estimated cost of a message for the loop."""

    def __post_init__(self) -> None:
        self.size = self.least

    @property
    def bound(self) -> int:
        """Number of messages that may take the loop's time of one batch."""
        if not self.message_seconds:
            return self.most
        return min(
            self.most, max(min(self.least, _LEAST), int(BATCH_SECONDS / self.message_seconds))
        )

    def worked(self, messages: int, *, loop_seconds: float) -> None:
        """Record how much of the loop's time a batch of `messages` took."""
        # a small batch is mostly fixed cost; where all claims are small there is no better measure
        if messages >= min(_SIGNIFICANT, self.size):
            newest = loop_seconds / messages
            self.message_seconds += (newest - self.message_seconds) * (
                _NEWEST_WEIGHT if self.message_seconds else 1.0
            )

    def claimed(self, messages: int) -> None:
        """Record how many messages a claim of `size` brought."""
        # a claim that was not full found the end of the backlog; halving forgets a flood in a few
        # claims
        wanted = self.size * 2 if messages >= self.size else max(self.least, self.size // 2)
        self.size = min(self.bound, wanted)

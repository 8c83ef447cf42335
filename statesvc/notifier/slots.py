"""How many deliveries may be in flight, in all and for one subscription. Bookkeeping of one process; no I/O.

A subscription never holds more than a quarter of the slots, so three that hang leave room for everybody else.
"""

from collections import Counter
from collections.abc import Mapping
from uuid import UUID


class Slots:
    """`total` in flight at most, of which a quarter (at least one) for one subscription."""

    def __init__(self, total: int) -> None:
        if total < 1:
            raise ValueError(f"the in-flight bound is at least 1, not {total}")
        self.share = max(1, total // 4)
        self._total = total
        self._busy: Counter[UUID] = Counter()

    @property
    def free(self) -> int:
        """How many more may start."""
        return self._total - self._busy.total()

    @property
    def busy(self) -> dict[UUID, int]:
        """In flight by subscription."""
        return dict(self._busy)

    @property
    def exhausted(self) -> bool:
        """Whether a claim could have found more, had there been more slots."""
        return self.free <= 0 or any(count >= self.share for count in self._busy.values())

    def cut_short(self, claimed: Counter[UUID], busy_before: Mapping[UUID, int]) -> bool:
        """Whether a share, as it stood when the claim was sent, kept it from finding more of some subscription."""
        return any(busy_before.get(subscription_id, 0) + count >= self.share for subscription_id, count in claimed.items())

    def take(self, subscription_id: UUID) -> None:
        """A delivery begins."""
        self._busy[subscription_id] += 1

    def give(self, subscription_id: UUID) -> None:
        """A delivery is settled."""
        self._busy[subscription_id] -= 1
        if self._busy[subscription_id] <= 0:
            del self._busy[subscription_id]

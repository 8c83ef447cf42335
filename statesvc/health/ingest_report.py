"""Report of a process that takes webhooks: acknowledged and refused pushes of the last minute, and
its disk.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

MINUTE_SECONDS: Final = 60.0
_SLOT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """`refused` by code of the problem.

    `disk_free_bytes` None: the database's disk is not of this machine.
    """

    acknowledged: int
    refused: Mapping[str, int] = field(default_factory=dict)
    disk_free_bytes: int | None = None
    disk_free_bytes_min: int = 0

    @property
    def pushes(self) -> int:
        return self.acknowledged + sum(self.refused.values())

    @property
    def is_disk_full(self) -> bool:
        """True if every push is refused for want of room."""
        return self.disk_free_bytes is not None and self.disk_free_bytes < self.disk_free_bytes_min


class LastMinute:
    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._slots: deque[tuple[float, Counter[str | None]]] = deque()

    def acknowledged(self) -> None:
        self._slot()[None] += 1

    def refused(self, code: str) -> None:
        self._slot()[code] += 1

    def counts(self) -> tuple[int, dict[str, int]]:
        """Return the acknowledged count, and the refused counts by code."""
        self._forget(self._now())
        total: Counter[str | None] = Counter()
        for _, counted in self._slots:
            total.update(counted)
        return total[None], {code: count for code, count in total.items() if code is not None}

    def _slot(self) -> Counter[str | None]:
        now = self._now()
        if not self._slots or now >= self._slots[-1][0] + _SLOT_SECONDS:
            self._forget(now)
            self._slots.append((now, Counter()))
        return self._slots[-1][1]

    def _forget(self, now: float) -> None:
        while self._slots and self._slots[0][0] <= now - MINUTE_SECONDS:
            self._slots.popleft()

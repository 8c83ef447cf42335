"""What bounds ingest: bytes in memory and room on the disk; never the length of the inbox."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_CHECK_SECONDS: Final = 1.0


class MemoryBound:
    """Bytes of bodies in memory, while they are read and until they are stored."""

    __slots__ = ("_bytes_max", "bytes_taken")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes_taken = 0

    def has_room(self, count: int) -> bool:
        """True where `count` more bytes would fit."""
        return self.bytes_taken + count <= self._bytes_max

    @property
    def is_under_pressure(self) -> bool:
        """More than half is taken."""
        return self.bytes_taken * 2 > self._bytes_max

    def take(self, count: int) -> bool:
        """Takes bytes; False (and nothing taken) where they do not fit."""
        if not self.has_room(count):
            return False
        self.bytes_taken += count
        return True

    def give_back(self, count: int) -> None:
        """Frees what was taken."""
        self.bytes_taken -= count


class DiskRoom:
    """Free bytes where the database lives, measured once a second at most. Without a path (a server elsewhere): always enough."""

    def __init__(self, path: Path | None, *, free_bytes_min: int, now: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._free_bytes_min = free_bytes_min
        self._now = now
        self._checked_at = float("-inf")
        self._enough = True

    def is_enough(self) -> bool:
        """False: a body more could fill the disk that the log needs."""
        if self._path is None:
            return True
        now = self._now()
        if now >= self._checked_at + _CHECK_SECONDS:
            self._enough = shutil.disk_usage(self._path).free >= self._free_bytes_min
            self._checked_at = now
        return self._enough

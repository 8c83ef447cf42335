"""Free bytes of the disk that the log needs: webhooks are refused before it is full."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_CHECK_SECONDS: Final = 1.0


class DiskRoom:
    """Free bytes where the database lives, measured once a second at most. Without a path (a server
    elsewhere): always enough.
    """

    def __init__(
        self, path: Path | None, *, free_bytes_min: int, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._free_bytes_min = free_bytes_min
        self._now = now
        self._checked_at = float("-inf")
        self._free_bytes = 0

    @property
    def free_bytes_min(self) -> int:
        return self._free_bytes_min

    def free_bytes(self) -> int | None:
        """Return the free bytes; None: the disk is not of this machine."""
        if self._path is None:
            return None
        now = self._now()
        if now >= self._checked_at + _CHECK_SECONDS:
            self._free_bytes = shutil.disk_usage(self._path).free
            self._checked_at = now
        return self._free_bytes

    def is_enough(self) -> bool:
        """Return False where another body could fill the disk that the log needs."""
        free_bytes = self.free_bytes()
        return free_bytes is None or free_bytes >= self._free_bytes_min

    def refusal(self) -> str | None:
        """Return why no webhook is taken; None: there is room."""
        if self.is_enough():
            return None
        return (
            f"storage_low: the database's disk has {(self.free_bytes() or 0) / 1e9:.2f} GB free, and below "
            f"{self._free_bytes_min / 1e9:.2f} GB (STATESVC_INGRESS_DISK_FREE_BYTES_MIN) no webhook is taken"
        )

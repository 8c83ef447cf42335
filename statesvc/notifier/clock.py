"""The database's clock between two answers of it: leases, schedules and limits are judged by one clock."""

import time
from datetime import datetime


class DatabaseClock:
    """Follows what the database last said. Before that it is the machine's own."""

    def __init__(self) -> None:
        self._ahead_seconds = time.time() - time.monotonic()

    def set(self, at: datetime) -> None:
        """The database said that it is `at`."""
        self._ahead_seconds = at.timestamp() - time.monotonic()

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.monotonic() + self._ahead_seconds

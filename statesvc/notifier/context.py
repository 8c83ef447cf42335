"""Context of a notifier: the dependencies from the composition root, and the database's clock."""

import time
from dataclasses import dataclass, field
from datetime import datetime

from events.crypto.keyring import Keyring
from statesvc.database.pool import Pool
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.delivery.targets import Targets
from statesvc.log.history import History
from statesvc.telemetry.metrics import Telemetry


class DatabaseClock:
    """The database's time, extrapolated between queries; leases, schedules and limits share it.

    Before the first query it is the machine's own.
    """

    def __init__(self) -> None:
        self._ahead_seconds = time.time() - time.monotonic()

    def set(self, at: datetime) -> None:
        """Set the clock to the database's answer."""
        self._ahead_seconds = at.timestamp() - time.monotonic()

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.monotonic() + self._ahead_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifierContext:
    """Everything open and running; the targets are open as long as the notifier runs."""

    pool: Pool
    keyring: Keyring
    listener: Listener
    telemetry: Telemetry
    targets: Targets
    waker: Waker | None = None
    """Wakes the sealer when attempts were recorded; without it they are sealed at its next pass."""
    archive: History = field(default_factory=lambda: History(None))
    """Archive in which the history of a notification with a full payload may be."""

"""What the composition root hands to the notifier."""

from dataclasses import dataclass, field

from events.keyring import Keyring
from statesvc.database.pool import Pool
from statesvc.log_archive.reading import LogArchive
from statesvc.notices.webhook import OperatorWebhook
from statesvc.notifier.targets import Targets
from statesvc.telemetry.metrics import Telemetry
from statesvc.wakeup.listener import Listener
from statesvc.wakeup.waker import Waker


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Everything open and running; the targets are open as long as the notifier runs."""

    pool: Pool
    keyring: Keyring
    listener: Listener
    telemetry: Telemetry
    targets: Targets
    waker: Waker | None = None
    """Tells the sealer that attempts were recorded; without it they are sealed at its next round."""
    operator: OperatorWebhook | None = None
    """Where the operator is told of notices, beside `GET /v1/notices`."""
    archive: LogArchive = field(default_factory=lambda: LogArchive(None))
    """Where the history of a notification with a full payload may be."""

"""What the composition root hands to the notifier."""

from dataclasses import dataclass, field

from events.crypto.keyring import Keyring
from statesvc.database.pool import Pool
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.delivery.targets import Targets
from statesvc.log.archive.log_archive import LogArchive
from statesvc.notifier.operator_webhook import OperatorWebhook
from statesvc.telemetry.metrics import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifierContext:
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

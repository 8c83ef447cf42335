"""Messages that become dead letters: each is counted, and each cause of a carrier has one log line a minute."""

from uuid import UUID

from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.minute_log import LOGGED_EVERY_SECONDS, MinuteLog


class Burials:
    """By carrier and cause."""

    def __init__(self, telemetry: Telemetry, *, every_seconds: float = LOGGED_EVERY_SECONDS) -> None:
        self._metric = telemetry.messages_buried
        self._log = MinuteLog("messages_buried", every_seconds=every_seconds)

    def count(self, carrier_id: str, cause: str, count: int, *, message_id: UUID | None = None) -> None:
        """Some of a carrier's; `message_id`: one of them, if it is known. In an event loop."""
        self._metric.add(count, {"carrier": carrier_id, "cause": cause})
        self._log.count(cause, carrier=carrier_id, count=count, message_id=message_id)

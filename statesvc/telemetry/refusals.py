"""What a process refused to take: each is counted, and each kind has one log line a minute."""

from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.minute_log import LOGGED_EVERY_SECONDS, MinuteLog


class Refusals:
    """By cause."""

    def __init__(self, telemetry: Telemetry, *, every_seconds: float = LOGGED_EVERY_SECONDS) -> None:
        self._metric = telemetry.refusals
        self._log = MinuteLog("refused", every_seconds=every_seconds)

    def count(self, cause: str) -> None:
        """One refusal. In an event loop."""
        self._metric.add(1, {"cause": cause})
        self._log.count(cause)

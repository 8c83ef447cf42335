"""What a process refused to take: each is counted, and each kind has one log line a minute."""

import asyncio
from collections import Counter
from typing import Final

import structlog

from statesvc.telemetry.metrics import Telemetry

LOGGED_EVERY_SECONDS: Final = 60.0

log = structlog.get_logger()


class Refusals:
    """The first of a kind is logged at once, those of the minute after it together at its end."""

    def __init__(self, telemetry: Telemetry, *, every_seconds: float = LOGGED_EVERY_SECONDS) -> None:
        self._metric = telemetry.refusals
        self._every_seconds = every_seconds
        self._since: Counter[str] = Counter()

    def count(self, cause: str) -> None:
        """One refusal. In an event loop."""
        self._metric.add(1, {"cause": cause})
        if cause in self._since:
            self._since[cause] += 1
        else:
            log.warning("refused", cause=cause, count=1)
            self._open(cause)

    def _open(self, cause: str) -> None:
        self._since[cause] = 0
        asyncio.get_running_loop().call_later(self._every_seconds, self._report, cause)

    def _report(self, cause: str) -> None:
        count = self._since.pop(cause)
        if count:
            log.warning("refused", cause=cause, count=count, seconds=self._every_seconds)
            self._open(cause)

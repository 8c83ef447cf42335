"""Log lines of frequent events: the first of a kind at once, the next of the minute together."""

import asyncio
from collections import Counter
from contextvars import Context
from typing import Final
from uuid import UUID

import structlog

from statesvc.telemetry.metrics import Telemetry

LOGGED_EVERY_SECONDS: Final = 60.0

log = structlog.get_logger()


class MinuteLog:
    """Warnings of one `event`, by cause and, where it matters, by carrier. In an event loop."""

    def __init__(self, event: str, *, every_seconds: float = LOGGED_EVERY_SECONDS) -> None:
        self._event = event
        self._every_seconds = every_seconds
        self._since: Counter[tuple[str, str | None]] = Counter()

    def count(
        self,
        cause: str,
        *,
        carrier: str | None = None,
        count: int = 1,
        message_id: UUID | None = None,
    ) -> None:
        """Count some of a kind. `message_id`: an example for the first line."""
        kind = cause, carrier
        if kind in self._since:
            self._since[kind] += count
        else:
            example = {} if message_id is None else {"message_id": str(message_id)}
            self._bound(carrier).warning(self._event, cause=cause, count=count, **example)
            self._open(kind)

    def _open(self, kind: tuple[str, str | None]) -> None:
        self._since[kind] = 0
        # what is bound to the first line does not concern the later ones
        asyncio.get_running_loop().call_later(
            self._every_seconds, self._report, kind, context=Context()
        )

    def _report(self, kind: tuple[str, str | None]) -> None:
        count, (cause, carrier) = self._since.pop(kind), kind
        # a minute without any ends the series: the next one is logged at once again
        if count:
            self._bound(carrier).warning(
                self._event, cause=cause, count=count, seconds=self._every_seconds
            )
            self._open(kind)

    def _bound(self, carrier: str | None) -> structlog.typing.FilteringBoundLogger:
        found: structlog.typing.FilteringBoundLogger = (
            log if carrier is None else log.bind(carrier=carrier)
        )
        return found


class Refusals:
    """Refusals of a process, by cause: each is counted, and each cause has one log line a
    minute.
    """

    def __init__(
        self, telemetry: Telemetry, *, every_seconds: float = LOGGED_EVERY_SECONDS
    ) -> None:
        self._metric = telemetry.refusals
        self._log = MinuteLog("refused", every_seconds=every_seconds)

    def count(self, cause: str) -> None:
        """Count one refusal. In an event loop."""
        self._metric.add(1, {"cause": cause})
        self._log.count(cause)


class Burials:
    """Messages that become dead letters, by carrier and cause: each is counted, and each kind has
    one log line a minute.
    """

    def __init__(
        self, telemetry: Telemetry, *, every_seconds: float = LOGGED_EVERY_SECONDS
    ) -> None:
        self._metric = telemetry.messages_buried
        self._log = MinuteLog("messages_buried", every_seconds=every_seconds)

    def count(
        self, carrier_id: str, cause: str, count: int, *, message_id: UUID | None = None
    ) -> None:
        """Count some of a carrier's; `message_id`: an example, if known. In an event loop."""
        self._metric.add(count, {"carrier": carrier_id, "cause": cause})
        self._log.count(cause, carrier=carrier_id, count=count, message_id=message_id)

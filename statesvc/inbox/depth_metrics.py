"""The depths of the queues as metrics: read from the tables when it is scraped, never counted along.

The call needs no key, so what was read is answered again for some seconds, and one reading serves all who ask at a time. Where the
database does not answer in time, nothing is reported: an old depth would pass for a new one.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import psycopg
import structlog

from statesvc.database.pool import Connections
from statesvc.inbox.queue_depths import queue_json
from statesvc.telemetry import names
from statesvc.telemetry.metrics import Telemetry, Values

SAMPLE_SECONDS: Final = 10.0
"""Below the usual interval of a scraper, so that each of its scrapes is a new reading."""
READ_SECONDS: Final = 2.0
INBOX_STATES: Final = ("ready", "leased", "scheduled", "held")

_log = structlog.get_logger()


class Depths:
    """What waited at the last reading."""

    def __init__(self, pool: Connections, *, now: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._now = now
        self._reading = asyncio.Lock()
        self._read_at = float("-inf")
        self._queue: dict[str, Any] | None = None

    def report_to(self, telemetry: Telemetry) -> None:
        """Has every exposition show the last reading."""
        telemetry.observe(names.INBOX_DEPTH, self._inbox)
        telemetry.observe(names.INBOX_OLDEST_READY, self._oldest)
        telemetry.observe(names.OUTBOX_DEPTH, self._outbox)
        telemetry.observe(names.DEAD_LETTERS_OPEN, self._dead_letters)

    async def sample(self) -> None:
        """Reads anew, unless that was done just now."""
        async with self._reading:
            if self._now() < self._read_at + SAMPLE_SECONDS:
                return
            try:
                async with asyncio.timeout(READ_SECONDS), self._pool.connection() as connection:
                    self._queue = await queue_json(connection)
            except (psycopg.Error, TimeoutError):
                self._queue = None
                _log.warning("depths_not_read", exc_info=True)
            self._read_at = self._now()

    def _inbox(self) -> Iterator[tuple[float, Values]]:
        for carrier_id, lane in self._lanes():
            for state in INBOX_STATES:
                yield lane[state], {"carrier": carrier_id, "state": state}

    def _oldest(self) -> Iterator[tuple[float, Values]]:
        for carrier_id, lane in self._lanes():
            yield lane["oldest_ready_seconds"] or 0.0, {"carrier": carrier_id}

    def _outbox(self) -> Iterator[tuple[float, Values]]:
        if self._queue is not None:
            for state, count in self._queue["outbox"].items():
                yield count, {"state": state}

    def _dead_letters(self) -> Iterator[tuple[float, Values]]:
        if self._queue is not None:
            yield self._queue["dead_letters"], {}

    def _lanes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if self._queue is not None:
            yield from self._queue["carriers"].items()

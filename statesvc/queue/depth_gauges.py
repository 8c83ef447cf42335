"""The depths of the queues that a scrape shows."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from statesvc.database.pool import Connections
from statesvc.queue.depths import read_depths
from statesvc.telemetry import gauges
from statesvc.telemetry.metrics import Telemetry, Values
from statesvc.telemetry.sampled import Sampled

# Below the usual interval of a scraper, so that each of its scrapes is a new reading.
SAMPLE_SECONDS: Final = 10.0
READ_SECONDS: Final = 2.0
_INBOX_STATES: Final = ("ready", "leased", "scheduled", "held")


class DepthGauges:
    """Depths at the last reading."""

    def __init__(self, pool: Connections, *, now: Callable[[], float] = time.monotonic) -> None:
        self._sampled = Sampled(
            pool,
            read_depths,
            name="queue depths",
            every_seconds=SAMPLE_SECONDS,
            read_seconds=READ_SECONDS,
            now=now,
        )

    def report_to(self, telemetry: Telemetry) -> None:
        telemetry.observe(gauges.INBOX_DEPTH, self._inbox)
        telemetry.observe(gauges.INBOX_OLDEST_READY, self._oldest)
        telemetry.observe(gauges.INBOX_OLDEST_HELD, self._oldest_held)
        telemetry.observe(gauges.OUTBOX_DEPTH, self._outbox)

    async def sample(self) -> None:
        """Read the depths, unless a recent reading exists."""
        await self._sampled.sample()

    def _inbox(self) -> Iterator[tuple[float, Values]]:
        for carrier_id, lane in self._lanes():
            for state in _INBOX_STATES:
                yield lane[state], {"carrier": carrier_id, "state": state}

    def _oldest(self) -> Iterator[tuple[float, Values]]:
        for carrier_id, lane in self._lanes():
            yield lane["oldest_ready_seconds"] or 0.0, {"carrier": carrier_id}

    def _oldest_held(self) -> Iterator[tuple[float, Values]]:
        for carrier_id, lane in self._lanes():
            yield lane["oldest_held_seconds"] or 0.0, {"carrier": carrier_id}

    def _outbox(self) -> Iterator[tuple[float, Values]]:
        if self._sampled.last is not None:
            outbox: Mapping[str, Any] = self._sampled.last["outbox"]
            for state, count in outbox.items():
                yield count, {"state": state}

    def _lanes(self) -> Iterator[tuple[str, Any]]:
        if self._sampled.last is not None:
            yield from self._sampled.last["carriers"].items()

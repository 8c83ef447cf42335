"""Depths of the queues: messages by carrier, and notifications.

The cost is bounded: each lane and state is counted through its index up to `COUNT_MAX` (some 10
ms), and leases are few. `counts_capped` is true where a count reached it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from pydantic import Field
from typing_extensions import TypedDict

from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.telemetry import gauges
from statesvc.telemetry.metrics import Telemetry, Values
from statesvc.telemetry.sampled import Sampled

_SQL = queries("statesvc.queue", "depths")

# Counting stops here: a count of this size means at least as many.
COUNT_MAX: Final = 100_000


class CarrierDepths(TypedDict):
    """The messages of a carrier."""

    ready: int
    leased: Annotated[int, Field(description="Held by a worker.")]
    scheduled: Annotated[int, Field(description="Waits for its time: a retry's backoff.")]
    held: Annotated[int, Field(description="Would be ready, but the carrier is on hold.")]
    oldest_held_seconds: Annotated[
        float | None,
        Field(description="How long the first held one has waited; null where none is."),
    ]
    oldest_ready_seconds: Annotated[
        float | None,
        Field(description="How long the first one has been ready; null where none is."),
    ]


class OutboxDepths(TypedDict):
    """The notifications."""

    ready: int
    leased: int
    scheduled: int


class QueueDepths(TypedDict):
    """Waiting messages and notifications."""

    carriers: dict[str, CarrierDepths]
    outbox: OutboxDepths
    dead_letters: Annotated[int, Field(description="Not settled by a human yet.")]
    counts_capped: Annotated[
        bool, Field(description=f"A count of {COUNT_MAX} means: at least that many.")
    ]


NO_DEPTHS: Final[QueueDepths] = {
    "carriers": {},
    "outbox": {"ready": 0, "leased": 0, "scheduled": 0},
    "dead_letters": 0,
    "counts_capped": False,
}


async def read_depths(
    connection: AsyncConnection[Any], *, count_max: int = COUNT_MAX
) -> QueueDepths:
    """Read the depths.

    Ready messages count as `held` while the kill switch of their carrier, or of all carriers,
    is on.
    """
    cursor = connection.cursor(binary=True, row_factory=dict_row)
    bound = {"count_max": count_max}
    lanes = await (await cursor.execute(_SQL["lanes"], bound)).fetchall()
    outbox = await (await cursor.execute(_SQL["outbox"], bound)).fetchone() or {}
    dead_letters: dict[str, int] = (
        await (await cursor.execute(_SQL["open_dead_letters"], bound)).fetchone() or {}
    )
    # every bounded count, also those that are not shown by themselves
    counts = [
        *outbox.values(),
        *dead_letters.values(),
        *(count for lane in lanes for count in (lane["waiting"], lane["scheduled"])),
    ]
    return {
        "carriers": {lane["carrier_id"]: _depths_of(lane) for lane in lanes},
        "outbox": {
            "ready": outbox["ready"],
            "leased": outbox["leased"],
            "scheduled": outbox["scheduled"],
        },
        "dead_letters": dead_letters["dead_letters"],
        "counts_capped": max(counts) >= count_max,
    }


def _depths_of(lane: DictRow) -> CarrierDepths:
    waiting, held = lane["waiting"], lane["held"]
    oldest = None if lane["oldest_seconds"] is None else round(lane["oldest_seconds"], 3)
    return {
        "ready": 0 if held else waiting,
        "leased": lane["leased"],
        "scheduled": lane["scheduled"],
        "held": waiting if held else 0,
        "oldest_held_seconds": oldest if held else None,
        "oldest_ready_seconds": None if held else oldest,
    }


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

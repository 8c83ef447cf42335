"""Counts acknowledgements by carrier and minute, independently of the messages.

Written every few seconds. The reconciler compares them with settlements. They also show when a
carrier was last heard and how often it repeats itself.
"""

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import psycopg
import structlog

from statesvc.background.periodic import Periodic
from statesvc.bodies.sealed_message import unix_ms_of
from statesvc.database.pool import Pool
from statesvc.database.queries import columns, queries

FLUSH_SECONDS: Final = 5.0
# Minutes for which counts stay in memory after they are written: more ids of that minute may come.
_REMEMBERED_MINUTES: Final = 5
# Minutes that stay in memory while the database is away.
_MINUTES_MAX: Final = 24 * 60
_COLUMNS: Final = ("carrier_ids", "minutes", "accepted", "duplicates", "refused", "last_ats")
_MINUTE_MS: Final = 60_000
_LAST_SECONDS: Final = 1.0

_SQL = queries("statesvc.ingress", "ack_counts")
log = structlog.get_logger()


@dataclass(slots=True)
class _Count:
    accepted: int = 0
    duplicates: int = 0
    refused: int = 0
    last: float | None = None
    """Time at which the carrier was last heard, seconds since 1970."""
    changed: bool = False


class AckCounts(Periodic):
    """Counts in memory; `start` writes them every few seconds, `close` once more. `process` names
    this start of this process.
    """

    def __init__(self, pool: Pool, *, process: str, flush_seconds: float = FLUSH_SECONDS) -> None:
        super().__init__(
            "ack counts",
            self.flush,
            every_seconds=flush_seconds,
            first_seconds=flush_seconds,
            retry_seconds=flush_seconds,
            retry_seconds_max=60.0,
            jitter=0.2,
        )
        self._pool = pool
        self._process = process
        self._counts: dict[tuple[str, int], _Count] = defaultdict(_Count)

    def accepted(self, carrier_id: str, message_id: UUID) -> None:
        """Count a message that became durable and is acknowledged, in the minute of its id."""
        count = self._heard(carrier_id, unix_ms_of(message_id) // _MINUTE_MS)
        count.accepted += 1
        count.last = time.time()

    def duplicate(self, carrier_id: str) -> None:
        """Count a byte-identical retry that was acknowledged."""
        count = self._now(carrier_id)
        count.duplicates += 1
        count.last = time.time()

    def refused(self, carrier_id: str) -> None:
        self._now(carrier_id).refused += 1

    async def flush(self) -> None:
        """Write the minutes that changed. They are whole counts, so writing them again after a lost
        answer does no harm.
        """
        oldest = _minute_now() - _MINUTES_MAX
        for key in [key for key in self._counts if key[1] < oldest]:
            del self._counts[key]
        rows = {key: count for key, count in self._counts.items() if count.changed}
        if not rows:
            return
        written = {
            key: (count.accepted, count.duplicates, count.refused) for key, count in rows.items()
        }
        values = [
            (
                carrier_id,
                _instant(minute * 60),
                *written[carrier_id, minute],
                None if count.last is None else _instant(count.last),
            )
            for (carrier_id, minute), count in sorted(rows.items())
        ]
        async with self._pool.connection() as connection:
            await connection.execute(
                _SQL["write"], {"process": self._process, **columns(values, _COLUMNS)}
            )
        remembered = _minute_now() - _REMEMBERED_MINUTES
        for key, count in rows.items():
            count.changed = written[key] != (count.accepted, count.duplicates, count.refused)
            if not count.changed and key[1] < remembered:
                del self._counts[key]

    async def close(self) -> None:
        """Stop, and write once more if that takes less than a second."""
        await super().close()
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                await self.flush()
        except (psycopg.Error, TimeoutError):
            log.warning("ack_counts_not_written", exc_info=True)

    def _now(self, carrier_id: str) -> _Count:
        return self._heard(carrier_id, _minute_now())

    def _heard(self, carrier_id: str, minute: int) -> _Count:
        count = self._counts[carrier_id, minute]
        count.changed = True
        return count


def _minute_now() -> int:
    return int(time.time()) // 60


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

"""The batch row: every transaction that writes entries writes exactly one, with their leaf hashes in the order of the batch."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.queries import queries

_SQL = queries("statesvc.log", "event_store")
LONGEST_TRANSACTION: Final = timedelta(minutes=1)
"""No transaction that writes entries may last so long: those of workers end within the lease, half of it."""


def recorded_too_early(batches: Iterable[tuple[datetime, datetime]]) -> Iterator[int]:
    """The places of batches that cannot have been recorded when they say: later ones were sealed before them.

    `batches`: the first and the last time of each, in the order of the log. A sealer that was away seals late, but in order, so it names
    none. What is named was back-dated, or a clock was wrong.
    """
    latest: datetime | None = None
    for place, (recorded_from, recorded_to) in enumerate(batches):
        if latest is not None and recorded_to < latest - LONGEST_TRANSACTION:
            yield place
        latest = recorded_from if latest is None else max(latest, recorded_from)


async def tick(connection: AsyncConnection[Any]) -> tuple[datetime, int]:
    """The database's clock, and the id for the batch of this transaction."""
    row = await (await connection.execute(_SQL["tick"])).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    return row[0], row[1]


async def write_batch(
    connection: AsyncConnection[Any],
    *,
    batch_id: int,
    recorded_at: datetime,
    recorded_to: datetime | None = None,
    leaf_hashes: Sequence[bytes],
    writer: str,
) -> None:
    """Writes the row. `recorded_at`: of its earliest entry; `recorded_to`: of its latest, None where all have one time.

    `writer` names the process.
    """
    await connection.execute(
        _SQL["insert_batch"],
        {
            "batch_id": batch_id,
            "recorded_from": recorded_at,
            "recorded_to": recorded_to or recorded_at,
            "entries": len(leaf_hashes),
            "leaf_hashes": b"".join(leaf_hashes),
            "writer": writer,
        },
    )

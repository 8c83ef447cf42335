"""The batch row: every transaction that writes entries writes exactly one, with their leaf hashes in the order of the batch."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from statesvc.database.queries import queries

_SQL = queries("statesvc.log", "event_store")


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

"""The transitions of the sealed log by index: what the stream tells.

As in the feed nobody is shown one before its checkpoint is published: one that commits late gets a later index and is not missed.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from events.sql.queries import queries
from statesvc.log.feed import MissingEntryError

_SQL = queries("statesvc.log", "transitions")


@dataclass(frozen=True, slots=True)
class SealedTransition:
    """A change of status at its place, with what its event says. `recorded_at`: when we knew it."""

    index: int
    carrier_id: str
    tracking_number: str = field(repr=False)
    from_status: str
    to_status: str
    occurred_at: datetime
    sequence: int
    recorded_at: datetime


async def read_transitions(connection: AsyncConnection[Any], *, begin: int, end: int) -> list[SealedTransition]:
    """Those among the entries from `begin` up to `end`, which is no further than the newest checkpoint. Raises MissingEntryError."""
    if begin >= end:
        return []
    rows = await (await connection.execute(_SQL["transitions"], {"begin": begin, "end": end}, binary=True)).fetchall()
    for row in rows:
        if row[1] is None:
            # its event, which stands before it in its batch
            raise MissingEntryError(row[0])
    return [SealedTransition(*row) for row in rows]

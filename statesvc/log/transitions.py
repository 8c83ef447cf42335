"""The transitions of the sealed log by index, for the stream.

A transition is shown only after its checkpoint is published: a late commit gets a later index and
is not missed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import orjson
from psycopg import AsyncConnection

from events.entry.kinds import EntryName
from statesvc.database.queries import queries
from statesvc.log.feed import MissingEntryError, recorded_span
from statesvc.log.history import History

_SQL = queries("statesvc.log", "transitions")


@dataclass(frozen=True, slots=True)
class SealedTransition:
    """A change of status with the fields of its event.

    `occurred_at` in the offset in which the carrier stated it; `recorded_at`: when we recorded
    it.
    """

    index: int
    carrier_id: str
    tracking_number: str = field(repr=False)
    from_status: str
    to_status: str
    occurred_at: datetime
    sequence: int
    recorded_at: datetime


async def read_transitions(
    connection: AsyncConnection[Any], *, begin: int, end: int, archive: History
) -> list[SealedTransition]:
    """Read those among the entries from `begin` up to `end`, which is no further than
    the newest checkpoint.

    Raises MissingEntryError, UnreadableArchiveError.
    """
    if begin >= end:
        return []
    span = await recorded_span(connection, begin, end)
    cursor = await connection.execute(
        _SQL["transitions"], {"begin": begin, "end": end, **span}, binary=True, prepare=False
    )
    rows = await cursor.fetchall()
    for row in rows:
        if row[1] is None:
            # its event, which stands before it in its batch
            raise MissingEntryError(row[0])
    hot = [_transition(row) for row in rows]
    if not await archive.reaches(connection, begin):
        return hot
    known = {each.index: each for each in await _archived(connection, archive, begin, end)}
    known.update((each.index, each) for each in hot)
    return [known[index] for index in sorted(known)]


def _transition(row: Sequence[Any]) -> SealedTransition:
    (
        index,
        carrier_id,
        number,
        from_status,
        to_status,
        occurred_at,
        offset,
        sequence,
        recorded_at,
    ) = row
    stated_at = occurred_at.astimezone(timezone(timedelta(seconds=offset)))
    return SealedTransition(
        index, carrier_id, number, from_status, to_status, stated_at, sequence, recorded_at
    )


async def _archived(
    connection: AsyncConnection[Any], archive: History, begin: int, end: int
) -> list[SealedTransition]:
    # an event stands before its transition in the same batch, perhaps before `begin`
    (first,) = await (
        await connection.execute(_SQL["batch_begin"], {"begin": begin})
    ).fetchone() or (begin,)
    entries = [entry for entry, _ in await archive.entries(connection, first, end)]
    events = {entry.values[:2]: entry for entry in entries if entry.kind.name == EntryName.EVENT}
    found = []
    for entry in entries:
        if entry.kind.name == EntryName.TRANSITION and entry.index >= begin:
            shipment_id, sequence, recorded_at, _, from_status, to_status, *_ = entry.values
            event = events.get((shipment_id, sequence))
            if event is None:
                raise MissingEntryError(entry.index)
            _, _, _, _, _, _, carrier_id, *_ = event.values
            document = orjson.loads(event.canonical)
            number, occurred_at = (
                document["tracking_number"],
                datetime.fromisoformat(document["occurred_at"]),
            )
            found.append(
                SealedTransition(
                    entry.index,
                    carrier_id,
                    number,
                    from_status,
                    to_status,
                    occurred_at,
                    sequence,
                    recorded_at,
                )
            )
    return found

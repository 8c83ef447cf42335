"""The log by index: every entry that a published checkpoint covers, in order, exactly once; and its
transitions, for the stream.

An entry is shown only after its checkpoint is published: it is never taken back, and a late commit
gets a later index and is not missed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

import orjson
from psycopg import AsyncConnection

from events.entry.kinds import FIRST_EPOCH, EntryName, leaf_hash_of
from statesvc.database.queries import queries
from statesvc.log.checkpoints import latest_head
from statesvc.log.cursor import LogCursor, resume
from statesvc.log.history import History
from statesvc.log.json_compression import decompress_json

_SQL = queries("statesvc.log", "feed")


class SealedEntry(NamedTuple):
    """An entry. Its personal part is not included: `canonical` binds that by a commitment."""

    log_index: int
    kind: str
    leaf_hash: bytes
    canonical: bytes
    sealed_at: datetime


@dataclass(frozen=True, slots=True)
class EntryRange:
    """Entries that stand in a row, how many the log has, and its epoch."""

    entries: list[SealedEntry]
    tree_size: int
    epoch: int
    after: LogCursor
    """Position at which they begin, in this epoch."""


class MissingEntryError(LookupError):
    """A sealed entry is not where it should be, and in no archive: the log was changed."""

    def __init__(self, index: int) -> None:
        super().__init__(f"the log lacks its entry {index}: run `statesvc verify`")
        self.index = index


async def read_entries(
    connection: AsyncConnection[Any], *, after: LogCursor, limit: int, archive: History
) -> EntryRange:
    """Read at most `limit` entries after this position; none past the newest checkpoint.

    Raises LostCursorError, MissingEntryError, UnreadableArchiveError.
    """
    # the published head, not the sealed tree: what no head covers may still be taken back by a
    # failed publication
    head = await latest_head(connection)
    size, epoch = (0, FIRST_EPOCH) if head is None else (head.tree_size, head.epoch)
    # after the head was read, whose epoch it must fit
    after = await resume(connection, after, epoch=epoch)
    begin = after.index + 1
    end = min(begin + limit, size)
    if begin >= end:
        return EntryRange([], size, epoch, after)
    # an index says nothing of a month: without the times the plan would open every partition
    span = await recorded_span(connection, begin, end)
    cursor = await connection.execute(
        # not prepared: from the sixth execution on PostgreSQL would plan for all months
        _SQL["entries"],
        {"begin": begin, "end": end, **span},
        binary=True,
        prepare=False,
    )
    columns = await cursor.fetchone() or ()
    entries = [_sealed(*row) for row in zip(*(column or () for column in columns), strict=True)]
    if len(entries) < end - begin:
        # what is missing shows by itself: no reader of newer entries asks where the archive ends
        known = {
            entry.log_index: entry for entry in await _archived(connection, archive, begin, end)
        }
        # rows of the database win over those of a file: a shipment that was brought back has both
        known.update((entry.log_index, entry) for entry in entries)
        entries = [known[index] for index in sorted(known)]
    for expected, entry in zip(range(begin, end), entries, strict=False):
        # a gap in the middle is named by its first index, which is where an operator must look
        if entry.log_index != expected:
            raise MissingEntryError(expected)
    if len(entries) != end - begin:
        raise MissingEntryError(begin + len(entries))
    return EntryRange(entries, size, epoch, after)


def _sealed(log_index: int, kind: str, stored: bytes, sealed_at: datetime) -> SealedEntry:
    canonical = decompress_json(stored)
    return SealedEntry(log_index, kind, leaf_hash_of(canonical), canonical, sealed_at)


async def recorded_span(
    connection: AsyncConnection[Any], begin: int, end: int
) -> dict[str, datetime | None]:
    """Return `since` and `until` of the entries from `begin` up to `end`: what reads by index plans
    with their partitions alone.
    """
    row = await (
        await connection.execute(_SQL["recorded_span"], {"begin": begin, "end": end}, binary=True)
    ).fetchone()
    since, until = row or (None, None)
    return {"since": since, "until": until}


async def _archived(
    connection: AsyncConnection[Any], archive: History, begin: int, end: int
) -> list[SealedEntry]:
    return [
        SealedEntry(entry.index, entry.kind.name, entry.leaf_hash, entry.canonical, sealed_at)
        for entry, sealed_at in await archive.entries(connection, begin, end)
    ]


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
    known = {
        each.index: each for each in await _archived_transitions(connection, archive, begin, end)
    }
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


async def _archived_transitions(
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

"""The log by index: every entry that a published checkpoint covers, in its one order, none twice, none left out.

Nobody is shown an entry before its checkpoint is published, so what a reader has seen is never taken back.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.log.archive.log_archive import LogArchive
from statesvc.log.checkpoints import latest_head

_SQL = queries("statesvc.log", "feed")


@dataclass(frozen=True, slots=True)
class SealedEntry:
    """One entry. Its personal part is no part of it: `canonical` binds that by a commitment."""

    index: int
    kind: str
    leaf_hash: bytes
    canonical: bytes
    sealed_at: datetime


@dataclass(frozen=True, slots=True)
class EntryRange:
    """Entries that stand in a row, and how many the log has."""

    entries: list[SealedEntry]
    tree_size: int


class MissingEntryError(LookupError):
    """A sealed entry is not where it should be, and in no archive: the log was changed."""

    def __init__(self, index: int) -> None:
        super().__init__(f"the log lacks its entry {index}: run `statesvc verify`")
        self.index = index


async def read_entries(connection: AsyncConnection[Any], *, begin: int, limit: int, archive: LogArchive) -> EntryRange:
    """At most `limit` entries from index `begin` on; none past the newest checkpoint. Raises MissingEntryError, LogArchiveError."""
    head = await latest_head(connection)
    size = 0 if head is None else head.tree_size
    end = min(begin + limit, size)
    if begin >= end:
        return EntryRange([], size)
    cursor = await connection.execute(_SQL["entries"], {"begin": begin, "end": end}, binary=True)
    entries = [SealedEntry(*row) for row in await cursor.fetchall()]
    if len(entries) < end - begin:
        # what is missing shows by itself: no reader of newer entries asks where the archive ends
        known = {entry.index: entry for entry in await _archived(connection, archive, begin, end)}
        known.update((entry.index, entry) for entry in entries)
        entries = [known[index] for index in sorted(known)]
    for expected, entry in zip(range(begin, end), entries, strict=False):
        if entry.index != expected:
            raise MissingEntryError(expected)
    if len(entries) != end - begin:
        raise MissingEntryError(begin + len(entries))
    return EntryRange(entries, size)


async def _archived(connection: AsyncConnection[Any], archive: LogArchive, begin: int, end: int) -> list[SealedEntry]:
    return [
        SealedEntry(entry.index, entry.kind.name, entry.leaf_hash, entry.canonical, sealed_at)
        for entry, sealed_at in await archive.entries(connection, begin, end)
    ]

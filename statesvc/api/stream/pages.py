"""Stretches of the log as frames, read from the database."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from statesvc.api.stream.frame import Frame, frame_of
from statesvc.database.pool import Connections
from statesvc.log.archive.log_archive import LogArchive
from statesvc.log.checkpoints import latest_head
from statesvc.log.transitions import read_transitions

ENTRIES_MAX: Final = 2000
"""Of the log in one page; half of them at most are transitions."""


@dataclass(frozen=True, slots=True)
class Page:
    """All transitions from the index that was asked for up to `end`."""

    frames: Sequence[Frame]
    end: int


class Pages:
    """Clients that are behind read one after the other: together they hold one connection, the tail at most another."""

    def __init__(self, pool: Connections, archive: LogArchive) -> None:
        self._pool = pool
        self._archive = archive
        self._turn = asyncio.Semaphore(1)

    async def tree_size(self) -> int:
        """How many entries the newest checkpoint covers."""
        async with self._pool.connection() as connection:
            head = await latest_head(connection)
        return 0 if head is None else head.tree_size

    async def newest(self, begin: int) -> Page:
        """From `begin` on, no further than the newest checkpoint. Raises MissingEntryError, LogArchiveError."""
        async with self._pool.connection() as connection:
            head = await latest_head(connection)
            end = min(begin + ENTRIES_MAX, 0 if head is None else head.tree_size)
            transitions = await read_transitions(connection, begin=begin, end=end, archive=self._archive)
        return Page([frame_of(transition) for transition in transitions], max(begin, end))

    async def older(self, begin: int, *, end: int) -> Page:
        """From `begin` on, up to `end` at most, which a checkpoint covers. Raises MissingEntryError, LogArchiveError."""
        end = min(begin + ENTRIES_MAX, end)
        async with self._turn, self._pool.connection() as connection:
            transitions = await read_transitions(connection, begin=begin, end=end, archive=self._archive)
        return Page([frame_of(transition) for transition in transitions], end)

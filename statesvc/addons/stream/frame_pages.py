"""Pages of the sealed log as frames, each read once for all clients that ask for it.

A client asks for the page at its next index, and goes on where the page ends: at the log's end all
clients soon ask for the same pages.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import psycopg
import structlog

from statesvc.addons.stream.frames import Frame, frame_of
from statesvc.database.pool import Connections
from statesvc.database.wakeups.wakeup import reconnect_delays
from statesvc.log.checkpoints import LogEnd, latest_head
from statesvc.log.cursor import LogCursor, resume
from statesvc.log.feed import read_transitions
from statesvc.log.history import History

ENTRIES_MAX: Final = 2000
"""Entries of the log in a page; half of them at most are transitions."""
PAGES_MAX: Final = 16

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class FramePage:
    """All transitions from the index that was asked for up to `end`.

    Without any where the log is in another `epoch` now.
    """

    frames: Sequence[Frame]
    end: int
    epoch: int


class Pages:
    """Clients read in turn: those that are behind hold a connection together, the others another."""

    def __init__(
        self, pool: Connections, archive: History, *, entries_max: int = ENTRIES_MAX
    ) -> None:
        self._pool = pool
        self._entries_max = entries_max
        self._archive = archive
        self._turns = {is_behind: asyncio.Semaphore(1) for is_behind in (False, True)}
        self._readings: dict[tuple[int, int], asyncio.Task[FramePage]] = {}
        self._size = 0
        self._jitter = random.Random()  # noqa: S311 - spreads tries, guards nothing

    def is_behind(self, index: int) -> bool:
        """Return whether a client with this next index has more than a page to read."""
        return self._size - index > self._entries_max

    async def end(self, after: LogCursor | None) -> tuple[LogEnd, LogCursor | None]:
        """Return the end of the log, and `after` as a position in its epoch.

        Raises LostCursorError.
        """
        async with self._pool.connection() as connection:
            end = LogEnd.of(await latest_head(connection))
            self._size = end.tree_size
            return end, None if after is None else await resume(connection, after, epoch=end.epoch)

    async def read(self, begin: int, *, epoch: int) -> FramePage:
        """Return the page that begins there; empty at the end of the log.

        Raises MissingEntryError, UnreadableArchiveError.
        """
        reading = self._readings.get((epoch, begin))
        if reading is None:
            reading = asyncio.create_task(self._read(begin, epoch), name="stream page")
            self._readings[epoch, begin] = reading
            if len(self._readings) > PAGES_MAX:
                del self._readings[next(iter(self._readings))]
        # a client that leaves must not end the reading for the others
        return await asyncio.shield(reading)

    def renew(self) -> None:
        """Forget what a publication may have changed: empty pages, and those under way."""
        self._readings = {
            (epoch, begin): reading
            for (epoch, begin), reading in self._readings.items()
            if reading.done() and not reading.exception() and reading.result().end > begin
        }

    async def _read(self, begin: int, epoch: int) -> FramePage:
        delays = reconnect_delays(self._jitter)
        while True:
            try:
                # the semaphore first: who waits for the turn must not hold a connection
                async with self._turns[self.is_behind(begin)]:
                    return await self._page(begin, epoch)
            except psycopg.Error as error:
                _log.warning("stream_not_read", error=error)
                await asyncio.sleep(next(delays))

    async def _page(self, begin: int, epoch: int) -> FramePage:
        async with self._pool.connection() as connection:
            newest = LogEnd.of(await latest_head(connection))
            self._size = newest.tree_size
            end = min(begin + self._entries_max, newest.tree_size)
            if newest.epoch != epoch or end <= begin:
                return FramePage([], begin, newest.epoch)
            transitions = await read_transitions(
                connection, begin=begin, end=end, archive=self._archive
            )
        frames = [frame_of(transition, epoch=epoch) for transition in transitions]
        return FramePage(frames, end, epoch)

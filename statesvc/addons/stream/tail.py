"""Reads the log as frames: its end for all clients, older pages for each client that is behind.

The tail sleeps until a checkpoint is published, and does not read without followers.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import psycopg
import structlog

from statesvc.addons.stream.window import Frame, Window, frame_of
from statesvc.background.waiting import set_within
from statesvc.database.pool import Connections
from statesvc.database.wakeups.wakeup import reconnect_delays
from statesvc.files.archive_errors import UnreadableArchiveError
from statesvc.log.checkpoints import LogEnd, latest_head
from statesvc.log.cursor import LogCursor, resume
from statesvc.log.feed import MissingEntryError
from statesvc.log.history import History
from statesvc.log.transitions import read_transitions

ENTRIES_MAX: Final = 2000
"""Entries of the log in a page; half of them at most are transitions."""
SWEEP_SECONDS: Final = 30.0
_SWEEP_SECONDS_WITHOUT_LISTENER: Final = 0.5

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class FramePage:
    """All transitions from the index that was asked for up to `end`, in this epoch of the log."""

    frames: Sequence[Frame]
    end: int
    epoch: int


class Pages:
    """Clients that are behind read in turn: together they hold a connection, the tail another."""

    def __init__(
        self, pool: Connections, archive: History, *, entries_max: int = ENTRIES_MAX
    ) -> None:
        self._pool = pool
        self._entries_max = entries_max
        self._archive = archive
        self._one_at_a_time = asyncio.Semaphore(1)

    async def end(self, after: LogCursor | None) -> tuple[LogEnd, LogCursor | None]:
        """Return the end of the log, and `after` as a position in its epoch.

        Raises LostCursorError.
        """
        async with self._pool.connection() as connection:
            end = LogEnd.of(await latest_head(connection))
            return end, None if after is None else await resume(connection, after, epoch=end.epoch)

    async def newest(self, begin: int) -> FramePage:
        """Read from `begin` on, no further than the newest checkpoint.

        Raises MissingEntryError, UnreadableArchiveError.
        """
        async with self._pool.connection() as connection:
            newest = LogEnd.of(await latest_head(connection))
            end = min(begin + self._entries_max, newest.tree_size)
            transitions = await read_transitions(
                connection, begin=begin, end=end, archive=self._archive
            )
        return FramePage(
            [frame_of(transition, epoch=newest.epoch) for transition in transitions],
            max(begin, end),
            newest.epoch,
        )

    async def older(self, begin: int, *, end: int, epoch: int) -> FramePage:
        """Read from `begin` on, up to `end` at most, which a checkpoint covers.

        Raises MissingEntryError, UnreadableArchiveError.
        """
        end = min(begin + self._entries_max, end)
        # the semaphore first: who waits for the turn must not hold a connection
        async with self._one_at_a_time, self._pool.connection() as connection:
            transitions = await read_transitions(
                connection, begin=begin, end=end, archive=self._archive
            )
        return FramePage(
            [frame_of(transition, epoch=epoch) for transition in transitions], end, epoch
        )


class Wakeable(Protocol):
    def wake(self) -> None:
        """Wake the follower: the window has grown."""


class Hearing(Protocol):
    @property
    def is_up(self) -> bool:
        """True if wake-ups can be heard."""


class Tail:
    """Fills the window. `woken` is set on each publication; the tail is its only consumer.

    `forked` is called when the log is in another epoch: the new log may lack entries that
    followers have seen, so they must start again.
    """

    def __init__(
        self,
        pages: Pages,
        *,
        window: Window,
        hearing: Hearing,
        woken: asyncio.Event,
        forked: Callable[[], None],
    ) -> None:
        self.window = window
        self._pages = pages
        self._hearing = hearing
        self._woken = woken
        self._forked = forked
        self._stopping = asyncio.Event()
        self._followers: set[Wakeable] = set()
        self._jitter = random.Random()  # noqa: S311 - spreads tries, guards nothing

    def join(self, follower: Wakeable, end: LogEnd) -> None:
        """Wake the follower from now on.

        `end`: that of a published checkpoint; with the first follower, the window begins
        there.
        """
        # without followers nothing was read meanwhile: a gap must not be taken for a window
        if not self._followers and (end.epoch, end.tree_size) > (
            self.window.epoch,
            self.window.end,
        ):
            self.window.restart(end.tree_size, epoch=end.epoch)
        self._followers.add(follower)
        self._woken.set()

    def leave(self, follower: Wakeable) -> None:
        """Stop waking the follower."""
        self._followers.discard(follower)

    def stop(self) -> None:
        """End `run`. Idempotent, safe before `run`."""
        self._stopping.set()
        self._woken.set()

    async def run(self) -> None:
        """Read on whatever the database does: followers wait and miss no transition."""
        delays = reconnect_delays(self._jitter)
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                # pages until the end, then it rests: one wake-up may stand for many publications
                while self._followers and await self._read() and not self._stopping.is_set():
                    pass
                delays = reconnect_delays(self._jitter)
                await self._rest()
            except psycopg.Error as error:
                _log.warning("stream_tail_not_read", error=error)
                await set_within(self._stopping, next(delays))
            except (MissingEntryError, UnreadableArchiveError) as error:
                # never skipped: the log was changed, or its archive cannot be read now
                _log.error("stream_log_incomplete", why=str(error))
                await set_within(self._stopping, SWEEP_SECONDS)

    async def _read(self) -> bool:
        """Read a page; return False at the end of the log."""
        begin = self.window.end
        page = await self._pages.newest(begin)
        if page.epoch != self.window.epoch:
            _log.warning("stream_log_forked", epoch=page.epoch)
            self._forked()
            return False
        if page.end == begin:
            return False
        if self.window.end == begin:
            # else it has begun anew meanwhile
            self.window.extend(page.frames, end=page.end)
            for follower in self._followers:
                follower.wake()
        return True

    async def _rest(self) -> None:
        # a wake-up can be lost while the listener reconnects: the sweep bounds the delay
        sweep = SWEEP_SECONDS if self._hearing.is_up else _SWEEP_SECONDS_WITHOUT_LISTENER
        await set_within(self._woken, sweep if self._followers else None)

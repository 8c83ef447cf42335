"""The one reader of the log's end: reads each new stretch once, for all clients of this process.

It sleeps until a checkpoint is published, and reads nothing while nobody follows.
"""

import asyncio
import random
from typing import Final, Protocol

import psycopg
import structlog

from statesvc.api.stream.pages import Pages
from statesvc.api.stream.window import Window
from statesvc.background.waiting import set_within
from statesvc.database.wakeups.direct import reconnect_delays
from statesvc.log.archive.log_archive_errors import LogArchiveError
from statesvc.log.feed import MissingEntryError

SWEEP_SECONDS: Final = 30.0
_DEAF_SWEEP_SECONDS: Final = 0.5

_log = structlog.get_logger()


class Wakeable(Protocol):
    """Who follows."""

    def wake(self) -> None:
        """The window has grown."""


class Hearing(Protocol):
    """What of a listener is needed."""

    @property
    def is_up(self) -> bool:
        """Whether wake-ups can be heard."""


class Tail:
    """Fills the window. `woken` is set on each publication; this is its one consumer."""

    def __init__(self, pages: Pages, *, hearing: Hearing, woken: asyncio.Event) -> None:
        self.window = Window()
        self._pages = pages
        self._hearing = hearing
        self._woken = woken
        self._stopping = asyncio.Event()
        self._followers: set[Wakeable] = set()
        self._jitter = random.Random()  # noqa: S311 - spreads tries, guards nothing

    def join(self, follower: Wakeable, *, tree_size: int) -> None:
        """From now on it is woken. `tree_size`: that of a published checkpoint; with nobody here before, the window begins there."""
        if not self._followers and tree_size > self.window.end:
            self.window.restart(tree_size)
        self._followers.add(follower)
        self._woken.set()

    def leave(self, follower: Wakeable) -> None:
        """It is woken no more."""
        self._followers.discard(follower)

    def stop(self) -> None:
        """Ends `run`. Idempotent, safe before `run`."""
        self._stopping.set()
        self._woken.set()

    async def run(self) -> None:
        """Goes on whatever the database does: followers wait and miss nothing."""
        delays = reconnect_delays(self._jitter)
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                while self._followers and await self._read() and not self._stopping.is_set():
                    pass
                delays = reconnect_delays(self._jitter)
                await self._rest()
            except psycopg.Error as error:
                _log.warning("stream_tail_not_read", error=error)
                await set_within(self._stopping, next(delays))
            except (MissingEntryError, LogArchiveError) as error:
                # never passed over: somebody has changed the log, or its archive cannot be read now
                _log.error("stream_log_incomplete", why=str(error))
                await set_within(self._stopping, SWEEP_SECONDS)

    async def _read(self) -> bool:
        """Reads a stretch; False at the end of the log."""
        begin = self.window.end
        page = await self._pages.newest(begin)
        if page.end == begin:
            return False
        if self.window.end == begin:
            # else it began anew meanwhile
            self.window.extend(page.frames, end=page.end)
            for follower in self._followers:
                follower.wake()
        return True

    async def _rest(self) -> None:
        sweep = SWEEP_SECONDS if self._hearing.is_up else _DEAF_SWEEP_SECONDS
        await set_within(self._woken, sweep if self._followers else None)

"""Who goes first in one event loop: small batches pass big ones.

A batch that is long stops now and then to let everything else of the loop run; while a batch that goes ahead is in progress it waits. But
not for long at a time, for it may hold locks, and not most of the time, for it must not starve.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from statesvc.background.waiting import set_within

GiveWay = Callable[[], Awaitable[None]]

LONGEST_SECONDS: Final = 0.025
_REST: Final = 3.0
"""After a wait the others go on for so many times its length, whoever wants to go ahead."""


async def breathe() -> None:
    """Lets what is ready to run in this loop run."""
    await asyncio.sleep(0)


class Passage:
    """Of one worker."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ahead = 0
        self._free = asyncio.Event()
        self._began = 0.0
        self._not_before = float("-inf")

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """For the time of the block the others wait."""
        if not self._ahead:
            self._began = self._clock()
            self._free.clear()
        self._ahead += 1
        try:
            yield
        finally:
            self._ahead -= 1
            if not self._ahead:
                self._free.set()
                ended = self._clock()
                if self._began >= self._not_before:
                    self._not_before = ended + _REST * min(LONGEST_SECONDS, ended - self._began)

    async def give_way(self) -> None:
        """Called by a long batch between its parts."""
        await breathe()
        if self._ahead and self._began >= self._not_before:
            left = self._began + LONGEST_SECONDS - self._clock()
            if left > 0:
                await set_within(self._free, left)

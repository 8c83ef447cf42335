"""Room in memory for bodies, given in the order in which they came, in two lanes.

```
head --large: Content-Length--> waits, its body unread --> room --> read, authenticated, sealed, stored --> given back
     --small: as its bytes come --------^
```
While a body waits it is not read: the network slows down its client, which is not refused. A
lane takes three quarters of the memory at most, so that large bodies never take the place of
small ones, nor small ones that of large. A large body gets all its room before it is read, or
several would wait for each other; a small one takes room for the bytes that came.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Final

SMALL_BYTES: Final = 64 * 1024
_LANE_SHARE: Final = 0.75


class NoRoomError(RuntimeError):
    """There is no room, now or in time."""


class MemoryBound:
    """Bytes of bodies in memory, from their heads until they are stored."""

    def __init__(self, bytes_max: int, *, wait_seconds: float = 0.0) -> None:
        self._bytes_max = bytes_max
        self._wait_seconds = wait_seconds
        self._taken = {False: 0, True: 0}
        self._waiting: dict[bool, deque[tuple[int, asyncio.Future[None]]]] = {
            False: deque(),
            True: deque(),
        }

    @property
    def bytes_taken(self) -> int:
        return sum(self._taken.values())

    @property
    def is_under_pressure(self) -> bool:
        """More than half is taken."""
        return self.bytes_taken * 2 > self._bytes_max

    def has_room(self, count: int, *, is_large: bool = False) -> bool:
        """Return whether `count` more bytes would fit."""
        in_lane = self._taken[is_large]
        fits_lane = not in_lane or in_lane + count <= self._bytes_max * _LANE_SHARE
        return fits_lane and self.bytes_taken + count <= self._bytes_max

    def take(self, count: int, *, is_large: bool = False) -> bool:
        """Take bytes at once.

        Return False (and take none) if they do not fit, or others wait already.
        """
        if self._waiting[is_large] or not self.has_room(count, is_large=is_large):
            return False
        self._taken[is_large] += count
        return True

    async def admit(self, count: int, *, is_large: bool = False) -> None:
        """Take bytes in turn. Raises NoRoomError."""
        if count > self._bytes_max:
            raise NoRoomError("more than there is")
        if self.take(count, is_large=is_large):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (count, turn)
        self._waiting[is_large].append(place)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                # its turn came as it was given up
                self.give_back(count, is_large=is_large)
            else:
                with suppress(ValueError):
                    self._waiting[is_large].remove(place)
                self._admit_waiting()
            if isinstance(error, TimeoutError):
                raise NoRoomError("not in time") from None
            raise

    def give_back(self, count: int, *, is_large: bool = False) -> None:
        self._taken[is_large] -= count
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        for is_large in (False, True):
            waiting = self._waiting[is_large]
            while waiting and self.has_room(waiting[0][0], is_large=is_large):
                count, turn = waiting.popleft()
                if not turn.done():
                    self._taken[is_large] += count
                    turn.set_result(None)


class ReservedMemory:
    """The memory of a body; its last owner gives it back."""

    __slots__ = ("_bound", "_count", "_is_large")

    def __init__(self, bound: MemoryBound, *, is_large: bool = False) -> None:
        self._bound = bound
        self._is_large = is_large
        self._count = 0

    def take(self, count: int) -> bool:
        """Take more at once; return False if there is no room."""
        if not self._bound.take(count, is_large=self._is_large):
            return False
        self._count += count
        return True

    async def grow(self, count: int) -> None:
        """Take more in turn. Raises NoRoomError."""
        await self._bound.admit(count, is_large=self._is_large)
        self._count += count

    def shrink_to(self, count: int) -> None:
        if count < self._count:
            self._bound.give_back(self._count - count, is_large=self._is_large)
            self._count = count

    def release(self) -> None:
        """Give everything back. Safe to call twice."""
        count, self._count = self._count, 0
        if count:
            self._bound.give_back(count, is_large=self._is_large)

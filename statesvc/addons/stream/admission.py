"""Admission of streams: limits for this process and for a key, and shedding. Pure.

Streams are the first to be shed, so that webhooks are still acknowledged. A refused client learns
when to come back. A client that hung up is found only at the next write; closed connections are not
counted, so a client need not wait for its own dead connection.
"""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import hdrs

from statesvc.http.problem import Code, Problem

CHECK_SECONDS: Final = 0.25
LATE_SECONDS: Final = 0.1
"""The event loop ran this late: an acknowledgement waits as long."""
CHECKS: Final = 8
CLOSED_SECONDS: Final = 10.0
"""After shedding no stream is let in for this long."""
_AGAIN_SECONDS: Final = (5.0, 15.0)


@dataclass(eq=False, slots=True)
class Slot:
    """A stream's slot; `is_gone` tells whether its client has hung up."""

    key_id: str
    is_gone: Callable[[], bool]


class Admission:
    def __init__(self, *, clients_max: int, clients_per_key_max: int) -> None:
        self._clients_max = clients_max
        self._clients_per_key_max = clients_per_key_max
        self._slots: set[Slot] = set()
        self._jitter = random.Random()  # noqa: S311 - spreads clients, guards nothing

    @contextmanager
    def slot(self, key_id: str, is_gone: Callable[[], bool]) -> Iterator[None]:
        """Hold a slot for the time of the block. Raises the problem 429 or 503."""
        # without those that hung up: a client that comes back would be refused because of itself
        taken = [slot for slot in self._slots if not slot.is_gone()]
        if sum(slot.key_id == key_id for slot in taken) >= self._clients_per_key_max:
            detail = f"this key has {self._clients_per_key_max} streams here already: close one"
            raise Problem(Code.TOO_MANY_REQUESTS, detail, headers=self.later())
        if len(taken) >= self._clients_max:
            raise Problem(
                Code.OVERLOADED,
                f"this process has {self._clients_max} streams already",
                headers=self.later(),
            )
        mine = Slot(key_id, is_gone)
        self._slots.add(mine)
        try:
            yield
        finally:
            self._slots.discard(mine)

    def later(self) -> dict[str, str]:
        """Return when to come back: not all at once."""
        return {hdrs.RETRY_AFTER: str(math.ceil(self._jitter.uniform(*_AGAIN_SECONDS)))}


class LoadShedder:
    """Sheds after two seconds of pressure at every check; a pause of the garbage collector is none.

    `check` gets the result of each check; times are those of a single monotonic clock.
    """

    def __init__(self, *, closed_seconds: float = CLOSED_SECONDS) -> None:
        self._closed_seconds = closed_seconds
        self._under_pressure = 0
        self._closed_until = float("-inf")

    def check(self, *, late_seconds: float, pressure: bool, now: float) -> bool:
        """Return whether to shed all streams now."""
        self._under_pressure = (
            self._under_pressure + 1 if pressure or late_seconds >= LATE_SECONDS else 0
        )
        if self._under_pressure < CHECKS:
            return False
        self._under_pressure = 0
        self._closed_until = now + self._closed_seconds
        return True

    def is_closed(self, now: float) -> bool:
        """Return whether to refuse new streams."""
        return now < self._closed_until

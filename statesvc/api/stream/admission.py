"""How many streams there may be: in this process, and of one key. Pure.

Whoever is refused is told when to come back. A client that hung up is found only at the next write; so before one is refused those that
are gone are left out of the count, and nobody waits for his own dead connection.
"""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import hdrs

from statesvc.http.problem import Code, Problem

_AGAIN_SECONDS: Final = (5.0, 15.0)


@dataclass(eq=False, slots=True)
class Place:
    """One stream's; `is_gone` is asked whether its client has hung up."""

    key_id: str
    is_gone: Callable[[], bool]


class Admission:
    """Counts who is in."""

    def __init__(self, *, clients_max: int, clients_per_key_max: int) -> None:
        self._clients_max = clients_max
        self._clients_per_key_max = clients_per_key_max
        self._places: set[Place] = set()
        self._jitter = random.Random()  # noqa: S311 - spreads clients, guards nothing

    @contextmanager
    def place(self, key_id: str, is_gone: Callable[[], bool]) -> Iterator[None]:
        """For the time of the block. Raises the problem 429 or 503."""
        there = [place for place in self._places if not place.is_gone()]
        if sum(place.key_id == key_id for place in there) >= self._clients_per_key_max:
            detail = f"this key has {self._clients_per_key_max} streams here already: close one"
            raise Problem(Code.TOO_MANY_REQUESTS, detail, headers=self.later())
        if len(there) >= self._clients_max:
            raise Problem(Code.OVERLOADED, f"this process has {self._clients_max} streams already", headers=self.later())
        mine = Place(key_id, is_gone)
        self._places.add(mine)
        try:
            yield
        finally:
            self._places.discard(mine)

    def later(self) -> dict[str, str]:
        """When to come back: not all at once."""
        return {hdrs.RETRY_AFTER: str(math.ceil(self._jitter.uniform(*_AGAIN_SECONDS)))}

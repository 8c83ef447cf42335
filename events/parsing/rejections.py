"""Members of a message that are no events: the first of them by place and reason, the others counted.

A hostile message may hold a member for every two of its bytes, and what we say of them is stored and shown to people.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import wraps
from typing import Final

from events.event import Normalized, Reading, Rejection

LISTED_MAX: Final = 20


class Rejections:
    """What a normalizer rejects, as it comes upon it."""

    __slots__ = ("_beyond", "_listed")

    def __init__(self) -> None:
        self._listed: list[Rejection] = []
        self._beyond = 0

    def add(self, pointer: str, why: str) -> None:
        """Takes in one member; `pointer` and `why` as in `Rejection`."""
        if len(self._listed) < LISTED_MAX:
            self._listed.append(Rejection(pointer=pointer, why=why))
        else:
            self._beyond += 1

    def __bool__(self) -> bool:
        return bool(self._listed)

    def __iter__(self) -> Iterator[Rejection]:
        """Those that are listed, and after them how many more there are."""
        yield from self._listed
        if self._beyond:
            yield Rejection(pointer="", why=f"{self._beyond} more members are no events")


def normalizer(read: Callable[[bytes, datetime, Rejections], Iterator[Reading]]) -> Callable[[bytes, datetime], Normalized]:
    """A carrier's `normalize` from a generator of its readings, which adds to the rejections on the way."""

    @wraps(read)
    def normalize(body: bytes, received_at: datetime) -> Normalized:
        rejections = Rejections()
        readings = tuple(read(body, received_at, rejections))
        return Normalized(readings=readings, rejections=tuple(rejections))

    return normalize

"""Members of a message that are no events: the first of them by place and reason, the others counted.

A hostile message may hold a member for every two of its bytes, and what we say of them is stored and shown to people.
"""

from collections.abc import Iterator
from typing import Final

from events.event import Rejection

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

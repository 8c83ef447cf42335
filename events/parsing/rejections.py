"""Members of a message that are no events: the first of them by place and reason, the others counted.

A hostile message may hold a member for every two of its bytes, and what we say of them is kept and shown to people.
"""

from collections.abc import Iterator
from typing import Final

from events.event import Rejection

TOLD_MAX: Final = 20


class Rejections:
    """What a normalizer rejects, as it comes upon it."""

    __slots__ = ("_beyond", "_told")

    def __init__(self) -> None:
        self._told: list[Rejection] = []
        self._beyond = 0

    def add(self, pointer: str, why: str) -> None:
        """Takes in one member; `pointer` and `why` as in `Rejection`."""
        if len(self._told) < TOLD_MAX:
            self._told.append(Rejection(pointer=pointer, why=why))
        else:
            self._beyond += 1

    def __bool__(self) -> bool:
        return bool(self._told)

    def __iter__(self) -> Iterator[Rejection]:
        """Those that are told, and after them how many more there are."""
        yield from self._told
        if self._beyond:
            yield Rejection(pointer="", why=f"{self._beyond} more members are no events")

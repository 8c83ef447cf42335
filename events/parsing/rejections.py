"""Members of a message that are no events: the first by place and reason, the others counted.

A hostile message may hold a member for every two of its bytes, and rejections are stored and shown
to people.
"""

from collections.abc import Iterator
from typing import Final

from events.event import Rejection

LISTED_MAX: Final = 20


class Rejections:
    """The members of a message that a normalizer rejects."""

    __slots__ = ("_beyond", "_listed", "says_nothing")

    def __init__(self) -> None:
        self._listed: list[Rejection] = []
        self._beyond = 0
        self.says_nothing = False
        """The message declares in a known field that it is empty, or is not about scans."""

    def add(self, pointer: str, why: str) -> None:
        """Add a member; `pointer` and `why` as in `Rejection`."""
        if len(self._listed) < LISTED_MAX:
            self._listed.append(Rejection(pointer=pointer, why=why))
        else:
            self._beyond += 1

    def note_nothing(self) -> None:
        """Note an empty list under a known name, or a notice that is known to be about
        something else than scans.
        """
        self.says_nothing = True

    def __bool__(self) -> bool:
        return bool(self._listed)

    def __iter__(self) -> Iterator[Rejection]:
        """Yield those that are listed, and after them how many more there are."""
        yield from self._listed
        if self._beyond:
            yield Rejection(pointer="", why=f"{self._beyond} more members are no events")

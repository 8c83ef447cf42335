"""Members of a message that are no events: the first of them by place and reason, the others counted.

A hostile message may hold a member for every two of its bytes, and what we say of them is stored and shown to people. A message of which
nothing is read, and nothing rejected, has to say itself that there is nothing; else that is a rejection.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import wraps
from typing import Final

from events.errors import UnreadableMessageError
from events.event import Normalized, Reading, Rejection
from events.parsing.forms import form_fields
from events.parsing.json import read_json
from events.parsing.silence import NO_CONTAINER, says_nothing, xml_holds_dated
from events.parsing.xml import is_xml, read_xml

LISTED_MAX: Final = 20


class Rejections:
    """The members of a message that a normalizer rejects."""

    __slots__ = ("_beyond", "_listed", "says_nothing")

    def __init__(self) -> None:
        self._listed: list[Rejection] = []
        self._beyond = 0
        self.says_nothing = False
        """The message says in a known place that there is nothing yet, or is about something else than scans."""

    def add(self, pointer: str, why: str) -> None:
        """Add one member; `pointer` and `why` as in `Rejection`."""
        if len(self._listed) < LISTED_MAX:
            self._listed.append(Rejection(pointer=pointer, why=why))
        else:
            self._beyond += 1

    def note_nothing(self) -> None:
        """Note an empty list under a known name, or a notice that is known to be about something else than scans."""
        self.says_nothing = True

    def __bool__(self) -> bool:
        return bool(self._listed)

    def __iter__(self) -> Iterator[Rejection]:
        """Yield those that are listed, and after them how many more there are."""
        yield from self._listed
        if self._beyond:
            yield Rejection(pointer="", why=f"{self._beyond} more members are no events")


def normalizer(
    read: Callable[[bytes, datetime, Rejections], Iterable[Reading]],
) -> Callable[[bytes, datetime], Normalized]:
    """Make a carrier's `normalize` of a generator of its readings, which adds to the rejections on the way. Never silent."""

    @wraps(read)
    def normalize(body: bytes, received_at: datetime) -> Normalized:
        rejections = Rejections()
        readings = tuple(read(body, received_at, rejections))
        if (
            not readings
            and not rejections
            and not rejections.says_nothing
            and not _says_nothing(body)
        ):
            rejections.add("", NO_CONTAINER)
        return Normalized(readings=readings, rejections=tuple(rejections))

    return normalize


def _says_nothing(body: bytes) -> bool:
    """Return whether a body that was read, in any form, says nothing."""
    return all(map(_part_says_nothing, form_fields(body).values() or (body,)))


def _part_says_nothing(content: bytes) -> bool:
    try:
        return (
            not xml_holds_dated(read_xml(content).root)
            if is_xml(content)
            else says_nothing(read_json(content), deep=True)
        )
    except UnreadableMessageError:
        return True

"""Pages of one list over all cells, in the list's order. Pure.

Each cell pages by itself. A merged page takes from the cells' pages as far as their common order is known: it stops where a cell's page
is used up and the cell has more. The merged cursor holds, for each cell, the cursor of the page it stands in and the last item taken from
it, so an item that moved to the end meanwhile is neither skipped nor repeated. A cell that does not answer keeps its place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from statesvc.http.paging import decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem, Violation

CURSOR_CHARS_MAX: Final = 16_384
Item = dict[str, Any]


class Place(NamedTuple):
    """Where a cell's list was left: the cursor of its page (None: the first), and the key of the last item taken (None: none)."""

    cursor: str | None = None
    taken: list[Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOrder:
    """How a list is sorted. `key`: JSON values that only grow along each cell's list; `rank`: what compares items of different cells."""

    key: Callable[[Item], list[Any]]
    rank: Callable[[Item], Any]


@dataclass(slots=True)
class CellList:
    """One cell's part of a merged page."""

    place: Place
    items: list[Item] = field(default_factory=list)
    next_cursor: str | None = None

    def turn(self, document: Mapping[str, Any], order: ListOrder) -> None:
        """Takes the page at `place`, without what was taken of it before."""
        taken = self.place.taken
        try:
            self.items = [item for item in document["items"] if taken is None or order.key(item) > taken]
        except TypeError:
            raise invalid_places() from None
        self.next_cursor = document["next_cursor"]
        if not self.items and self.next_cursor is not None:
            self.place = Place(self.next_cursor, taken)

    @property
    def is_open(self) -> bool:
        """Whether nothing is known of what comes next, though something does."""
        return not self.items and self.next_cursor is not None

    def take(self, order: ListOrder) -> Item:
        """The next item."""
        item = self.items.pop(0)
        cursor = self.next_cursor if not self.items and self.next_cursor is not None else self.place.cursor
        self.place = Place(cursor, order.key(item))
        return item


def merge(lists: Mapping[str, CellList], order: ListOrder, *, limit: int) -> list[Item]:
    """The first items over all lists, each with the `cell` that it is from; moves the places on."""
    merged: list[Item] = []
    while len(merged) < limit and not any(part.is_open for part in lists.values()):
        heads = [(order.rank(part.items[0]), name) for name, part in lists.items() if part.items]
        if not heads:
            break
        _, name = min(heads)
        merged.append({**lists[name].take(order), "cell": name})
    return merged


def encode_places(places: Mapping[str, Place], bound_to: Mapping[str, Any]) -> str:
    """The merged cursor under this filter."""
    return encode_cursor([{name: [*place] for name, place in places.items()}], bound_to)


def decode_places(cursor: str, bound_to: Mapping[str, Any]) -> dict[str, Place]:
    """The places in a merged cursor; raises the problem `invalid_cursor` unless it was made under this filter."""
    if len(cursor) > CURSOR_CHARS_MAX:
        raise invalid_places()
    match decode_cursor(cursor, bound_to, fields=1):
        case [dict() as places] if all(map(_is_place, places.values())):
            return {name: Place(*place) for name, place in places.items()}
        case _:
            raise invalid_places()


def invalid_places() -> Problem:
    """The problem of a cursor that is none of ours."""
    return Problem(Code.INVALID_CURSOR, "send `next_cursor` as it was given, with the same filter; or start again without a cursor")


def _is_place(value: object) -> bool:
    match value:
        case [str() | None, [*parts]] if all(isinstance(part, str | int) for part in parts):
            return True
        case [str() | None, None]:
            return True
        case _:
            return False


def limit_of(text: str | None, *, default: int, maximum: int) -> int:
    """How many items are asked for. Raises the problem `invalid_request`."""
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= maximum):
        violation = Violation("/query/limit", f"a number from 1 to {maximum}")
        raise Problem(Code.INVALID_REQUEST, "the parameters break the contract", violations=[violation])
    return int(text)

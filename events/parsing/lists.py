"""One child or many: converters print a list of one as its member, and empty lists in five ways."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Final

from lxml import etree

from events.errors import Cause, UnreadableMessageError
from events.parsing.rejections import Rejections
from events.parsing.silence import (
    NO_CONTAINER,
    holds_dated,
    holds_dated_list,
    respelled,
    says_nothing,
    squashed,
    xml_holds_dated,
)

JsonObject = dict[str, Any]

_NOTHING: Final[JsonObject] = {}


def as_list(value: object) -> list[Any]:
    """Return [] for None, "", [] and {}, a list itself, and anything else in a list."""
    if type(value) is list:
        return value
    if value is None or value in ("", {}):
        return []
    return [value]


def objects(value: object, pointer: str, rejections: Rejections) -> list[tuple[int, JsonObject]]:
    """Return the objects of a list with their index; every other member is added to
    `rejections` under `pointer`.
    """
    found = []
    for index, member in enumerate(as_list(value)):
        if type(member) is dict:
            found.append((index, member))
        else:
            rejections.add(f"{pointer}/{index}", "not an object")
    return found


def members(
    body: object, where: str, rejections: Rejections, *, unknown: str
) -> Iterator[tuple[str, JsonObject]]:
    """Yield an answer, or the answers of a list, each with its pointer; skip empty answers.

    Raises UnreadableMessageError with the text `unknown`.
    """
    if type(body) is list:
        yield from (
            (f"{where}/{index}", member)
            for index, member in objects(body, where, rejections)
            if member
        )
    elif type(body) is not dict:
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, unknown)
    elif body:
        yield where, body


def objects_at(
    parent: JsonObject,
    name: str,
    where: str,
    rejections: Rejections,
    *,
    required: bool = True,
    but: AbstractSet[str] = frozenset(),
) -> list[tuple[int, JsonObject]]:
    """Return the objects of the list `name` of an object at `where`.

    The list may have another spelling, be a single object, or be wrapped in an object. Its
    absence is a rejection unless the object declares that it is empty; if not `required`, only
    where the object has an unknown list of dated members, by its name in `but`.
    """
    printed = name if name in parent else respelled(parent, name)
    if printed is None:
        _add_absence(
            parent,
            f"{where}/{name}",
            rejections,
            lost=None if required else holds_dated_list(parent, but),
        )
        return []
    value = parent[printed]
    if (
        type(value) is dict
        and len(value) == 1
        and type(inner := next(iter(value.values()))) is list
    ):
        value = inner
    return _noted(value, f"{where}/{printed}", rejections)


def object_at(
    parent: JsonObject,
    name: str,
    where: str,
    rejections: Rejections,
    *,
    required: bool = True,
    but: AbstractSet[str] = frozenset(),
) -> JsonObject:
    """Return the object `name` of an object at `where`, as `objects_at`; where there are several
    the first, and a rejection.

    Not `required`, its absence is a rejection where anything dated is not known.
    """
    printed = name if name in parent else respelled(parent, name)
    if printed is None:
        _add_absence(
            parent,
            f"{where}/{name}",
            rejections,
            lost=None if required else holds_dated(parent, but),
        )
        return _NOTHING
    found = _noted(parent[printed], f"{where}/{printed}", rejections)
    if len(found) > 1:
        rejections.add(f"{where}/{name}", "several objects where one is known")
    return found[0][1] if found else _NOTHING


def _add_absence(
    parent: JsonObject, pointer: str, rejections: Rejections, *, lost: bool | None
) -> None:
    """Add the absence to the rejections.

    `lost`: whether data is lost by it; None: unless the parent declares that it is empty.
    """
    if parent is _NOTHING:
        return
    if lost or (lost is None and not says_nothing(parent)):
        rejections.add(pointer, NO_CONTAINER)
    elif lost is None:
        rejections.note_nothing()


def _noted(value: object, pointer: str, rejections: Rejections) -> list[tuple[int, JsonObject]]:
    if not as_list(value):
        rejections.note_nothing()
    return objects(value, pointer, rejections)


def recognised(
    members: Iterable[tuple[str, JsonObject]], names: AbstractSet[str], rejections: Rejections
) -> list[tuple[str, JsonObject]]:
    """Return the members with a known name, each with its pointer.

    Others are rejections unless they are notices.
    """
    found = []
    for where, member in members:
        if names & member.keys():
            found.append((where, member))
        elif not says_nothing(member):
            rejections.add(where, NO_CONTAINER)
    return found


def child(value: JsonObject, *path: str) -> JsonObject:
    """Return the object at `path`; an empty object (never to be changed) for anything else.

    A list of one is taken for its member, as converters print both.
    """
    here: object = value
    for name in path:
        here = here.get(name) if type(here) is dict else None
        if type(here) is list and len(here) == 1:
            here = here[0]
    return here if type(here) is dict else _NOTHING


def elements_at(
    parent: etree._Element,
    path: str,
    where: str,
    rejections: Rejections,
    *,
    start: int = 1,
    but: AbstractSet[str] = frozenset(),
) -> list[tuple[int, etree._Element]]:
    """Return the elements at `path` with their number, also under another spelling of their names.

    Without any it is a rejection where dated elements lie in the parent (in others than `but`):
    scans under a name that is not known.
    """
    found = parent.findall(path)
    if not found:
        found = _respelled_elements(parent, path)
        if not found and xml_holds_dated(parent, but):
            rejections.add(f"{where}/{path}".lstrip("/"), NO_CONTAINER)
        elif not found:
            rejections.note_nothing()
    return list(enumerate(found, start=start))


def _respelled_elements(parent: etree._Element, path: str) -> list[etree._Element]:
    found = [parent]
    for name in map(squashed, path.split("/")):
        found = [child for element in found for child in element if squashed(child.tag) == name]
    return found

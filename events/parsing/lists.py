"""One child or many: XML-to-JSON converters print a list of one as the object itself, and an empty list in five ways."""

from typing import Any, Final

from events.parsing.rejections import Rejections

JsonObject = dict[str, Any]

_NOTHING: Final[JsonObject] = {}


def as_list(value: object) -> list[Any]:
    """None, "", [] and {} -> []; a list -> itself; anything else -> a list of it."""
    if type(value) is list:
        return value
    if value is None or value in ("", {}):
        return []
    return [value]


def objects(value: object, pointer: str, rejections: Rejections) -> list[tuple[int, JsonObject]]:
    """The objects of a list with their index; every other member is added to `rejections` under `pointer`."""
    found = []
    for index, member in enumerate(as_list(value)):
        if type(member) is dict:
            found.append((index, member))
        else:
            rejections.add(f"{pointer}/{index}", "not an object")
    return found


def child(value: JsonObject, *path: str) -> JsonObject:
    """The object at `path`; an empty one (never to be changed) where it is absent or something else.

    A list of one is taken for its member, as converters print both.
    """
    here: object = value
    for name in path:
        here = here.get(name) if type(here) is dict else None
        if type(here) is list and len(here) == 1:
            here = here[0]
    return here if type(here) is dict else _NOTHING

"""Events of a JSON, XML or form body by the path of their list, as scalars by their paths.

Each has its own and the outer scalars. A path is `/data/shipments/[]/scans/[]`: `[]` matches each
member of a list, `{}` each member of an object with keys as names, such as numbers. Drafted
carriers are read so (docs/carrier-package.md): slower than a module that looks up the fields it
knows.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lxml import etree

from events.errors import UnreadableMessageError
from events.parsing.forms import form_fields
from events.parsing.json import read_json
from events.parsing.lists import object_at, objects, objects_at
from events.parsing.rejections import Rejections
from events.parsing.text import decoded, text
from events.parsing.xml import is_xml, read_xml

LIST: Final = "[]"
KEYS: Final = "{}"


def read_value(body: bytes) -> Any:  # noqa: ANN401 - as read_json
    """Parse a body of any form as a value of JSON; attributes of XML are named `@name`.

    Raises UnreadableMessageError.
    """
    if is_xml(body):
        root = read_xml(body).root
        return {str(root.tag): _of_element(root)}
    fields = form_fields(body)
    if not fields:
        return read_json(body)
    return {decoded(name): _of_field(content) for name, content in fields.items()}


def _of_field(content: bytes) -> object:
    if content[:1] in (b"{", b"[", b"<"):
        try:
            return read_value(content)
        except UnreadableMessageError:
            pass
    return decoded(content)


def _of_element(element: etree._Element) -> object:
    found: dict[str, Any] = {f"@{name!s}": each for name, each in element.attrib.items()}
    words = (element.text or "").strip()
    if not found and not len(element):
        return words
    if words:
        found["#text"] = words
    for each in element:
        value = _of_element(each)
        if each.tag not in found:
            found[each.tag] = value
        elif type(found[each.tag]) is list:
            found[each.tag].append(value)
        else:
            found[each.tag] = [found[each.tag], value]
    return found


def flat_events(
    value: object, path: str, rejections: Rejections
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each event at the path: its pointer, and the scalars of it and of the objects
    around it by their paths.
    """
    yield from _along(value, tuple(path.split("/")[1:]), ("", ""), {}, rejections)


def _along(
    value: object,
    steps: tuple[str, ...],
    at: tuple[str, str],
    outer: Mapping[str, str],
    rejections: Rejections,
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the events along the rest of a path. `at`: the path and the pointer of the value."""
    path, pointer = at
    found = {**outer, **scalars(value, path, but=steps[0] if steps else None)}
    if not steps:
        yield pointer, found
        return
    for step, key, inner in _inner(value, steps, pointer, rejections):
        rest = steps[1 + step.count("/") :]
        inside = {**found, f"{path}/{KEYS}": key} if step == KEYS else found
        yield from _along(inner, rest, (f"{path}/{step}", f"{pointer}/{key}"), inside, rejections)


def _inner(
    value: object, steps: tuple[str, ...], pointer: str, rejections: Rejections
) -> Iterator[tuple[str, str, object]]:
    """Yield the values at the first step, with keys or indexes.

    A list with its name is a single step.
    """
    name = steps[0]
    if name == LIST:
        yield from ((LIST, str(index), each) for index, each in objects(value, pointer, rejections))
    elif type(value) is not dict:
        rejections.add(pointer, "not an object")
    elif name == KEYS:
        yield from ((KEYS, key, each) for key, each in value.items())
    elif steps[1:2] == (LIST,):
        for index, each in objects_at(value, name, pointer, rejections):
            yield f"{name}/{LIST}", f"{name}/{index}", each
    else:
        yield name, name, object_at(value, name, pointer, rejections)


def scalars(value: object, path: str, *, but: str | None = None) -> dict[str, str]:
    """Return the texts and numbers of an object, and of the objects within it except
    `but`, by their paths.
    """
    found: dict[str, str] = {}
    for name, each in value.items() if type(value) is dict else ():
        if type(each) is dict and but not in {name, KEYS}:
            found |= scalars(each, f"{path}/{name}")
        elif (printed := text(each)) is not None:
            found[f"{path}/{name}"] = printed
    return found

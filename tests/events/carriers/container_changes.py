"""The containers of a body, each renamed, wrapped, emptied, doubled, or left out: what a carrier
does to its format one day.

A container is an object or a list in JSON, an element that holds elements (or attributes) in XML.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

from lxml import etree

from events.parsing.xml import is_xml

RENAMED: Final = "_renamed"
Path = tuple[str | int, ...]


def changed_bodies(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each change by name with the body that has it; none of a body that is neither JSON nor
    XML.
    """
    if is_xml(body):
        yield from _changed_xml(body)
        return
    try:
        value = json.loads(body)
    except ValueError:
        return
    for path in _containers(value):
        for change, became in _changed_json(value, path):
            yield f"{change} {'/'.join(map(str, path)) or 'root'}", json.dumps(became).encode()


def bodies_with_a_bare_element(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each list of objects by name, with the body in which it has one more: the first,
    without any container.
    """
    try:
        value = json.loads(body)
    except ValueError:
        return
    for path in _containers(value):
        members = _at(value, path)
        if not isinstance(members, list) or not members or not isinstance(members[0], dict):
            continue
        bare = {
            key: each
            for key, each in members[0].items()
            if not isinstance(each, dict | list | None)
        }
        if bare and bare != members[0]:
            changed = json.dumps(_put(value, path, [*members, bare])).encode()
            yield "/".join(map(str, path)), changed


def _containers(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the containers; of a list the first two members, which stand for the others."""
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value[:2])
        if isinstance(value, list)
        else ()
    )
    if isinstance(value, dict | list):
        yield path
    for key, child in children:
        yield from _containers(child, (*path, key))


def _changed_json(value: Any, path: Path) -> Iterator[tuple[str, Any]]:
    inner = _at(value, path)
    yield "wrapped in a list", _put(value, path, [inner])
    yield "wrapped in an object", _put(value, path, {"item": inner})
    yield "doubled", _put(value, path, [inner, inner])
    yield "emptied to a list", _put(value, path, [])
    yield "emptied to an object", _put(value, path, {})
    if path and isinstance(path[-1], str):
        parent = _at(value, path[:-1])
        yield (
            "renamed",
            _put(
                value,
                path[:-1],
                {
                    (f"{key}{RENAMED}" if key == path[-1] else key): each
                    for key, each in parent.items()
                },
            ),
        )
        yield (
            "left out",
            _put(value, path[:-1], {key: each for key, each in parent.items() if key != path[-1]}),
        )


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _put(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    changed = value.copy()
    changed[path[0]] = _put(value[path[0]], path[1:], new)
    return changed


def _changed_xml(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield changes of XML; each is done to all elements with the same way from the root."""
    root = etree.fromstring(body, etree.XMLParser(remove_comments=True, remove_pis=True))
    ways = dict.fromkeys(_way(element) for element in root.iter() if len(element) or element.attrib)
    for way in ways:
        for change in ("renamed", "wrapped", "emptied", "doubled", "left out"):
            if len(way) == 1 and change not in ("renamed", "emptied"):
                continue
            tree = copy.deepcopy(root)
            for element in [each for each in tree.iter() if _way(each) == way]:
                _change_element(element, change)
            yield (
                f"{change} {'/'.join(etree.QName(tag).localname for tag in way)}",
                etree.tostring(tree),
            )


def _way(element: etree._Element) -> tuple[str, ...]:
    return (*(str(parent.tag) for parent in reversed([*element.iterancestors()])), str(element.tag))


def _change_element(element: etree._Element, change: str) -> None:
    parent = element.getparent()
    if change == "renamed":
        element.tag = f"{element.tag}{RENAMED}"
    elif change == "emptied":
        tail = element.tail
        element.clear()
        element.tail = tail
    elif parent is None:
        return
    elif change == "wrapped":
        wrapper = etree.Element("item")
        parent.replace(element, wrapper)
        wrapper.append(element)
    elif change == "doubled":
        element.addnext(copy.deepcopy(element))
    else:
        parent.remove(element)

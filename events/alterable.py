"""A body as a document whose single values can be altered: JSON, XML, and either of them as text inside the other or in a form field.

For explaining what a normalizer read, never for reading: it normalizes nothing, and prints a document again that says the same, in other
bytes.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import orjson
from lxml import etree

from events.errors import UnreadableMessageError
from events.parsing.json import read_json
from events.parsing.xml import is_xml

Value = str | int | float | bool
NESTED_MAX: Final = 3
"""Depth to which documents may stand as text inside each other."""

_CONTAINERS: Final = ("{", "[", "<")


@dataclass(frozen=True, slots=True)
class BodyValue:
    """One value of a document. `write` puts another in its place, None for nothing, until the next `write`."""

    pointer: str
    """A JSON pointer; in XML the path of the element or `@attribute`, with an index where several of a name stand together."""
    value: Value
    write: Callable[[Value | None], None]


@dataclass(frozen=True, slots=True)
class AlterableDocument:
    """The leaves that hold something, in the order of the document, and what prints it as it is now."""

    leaves: tuple[BodyValue, ...]
    text: Callable[[], bytes]


def alterable(body: bytes) -> AlterableDocument | None:
    """Parse a body that is JSON or XML; return None for any other."""
    field = _form_field(body)
    content = body if field is None else field
    try:
        if is_xml(content):
            tree = _xml(content)
            return AlterableDocument(
                tuple(_xml_leaves(tree, f"/{_local(tree)}", 0)),
                lambda: etree.tostring(tree, encoding="utf-8"),
            )
        values = _json(content)
    except (UnreadableMessageError, etree.XMLSyntaxError):
        return None
    if len(values) == 1 and isinstance(values[0], dict | list):
        value = values[0]
        return AlterableDocument(
            tuple(_json_leaves(value, "", lambda: None, 0)), lambda: printed_json(value)
        )
    leaves = (
        _json_leaves(value, f"/{index}", lambda: None, 0)
        for index, value in enumerate(values)
        if isinstance(value, dict | list)
    )
    return AlterableDocument(
        tuple(chain.from_iterable(leaves)),
        lambda: b"\n".join(
            value if isinstance(value, bytes) else printed_json(value) for value in values
        ),
    )


def _json(content: bytes) -> list[Any]:
    """Parse a JSON text, or each of its lines; a line that is not JSON stays as bytes."""
    try:
        return [read_json(content)]
    except UnreadableMessageError:
        lines = [line for line in content.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        return [_line(line) for line in lines]


def _line(line: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return read_json(line)
    except UnreadableMessageError:
        return line


def printed_json(value: object) -> bytes:
    """Print whatever `read_json` returns, as JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # an integer of more than 64 bits
        return json.dumps(value, ensure_ascii=False).encode()


def _form_field(body: bytes) -> bytes | None:
    """Return the first field of a form that holds a document."""
    if not body[:1].isalpha():
        return None
    values = (
        unquote_to_bytes(part.partition(b"=")[2].replace(b"+", b" ")) for part in body.split(b"&")
    )
    return next((value for value in values if value.lstrip()[:1] in {b"{", b"[", b"<"}), None)


def _json_leaves(
    value: Any,  # noqa: ANN401 - any JSON
    pointer: str,
    changed: Callable[[], None],
    depth: int,
) -> Iterator[BodyValue]:
    """Yield the leaves of a JSON value. `changed` prints what holds this value anew, where that is a text."""
    members = list(value.items() if isinstance(value, dict) else enumerate(value))
    for key, member in members:
        below = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"

        def write(altered: Value | None, key: Any = key) -> None:  # noqa: ANN401 - a name or an index
            value[key] = altered
            changed()

        if isinstance(member, dict | list):
            yield from _json_leaves(member, below, changed, depth)
        elif member is not None and member != "":
            yield from _nested(member, below, write, depth) or (BodyValue(below, member, write),)


def _xml(content: bytes) -> etree._Element:
    """Parse like `events.parsing.xml`, but keep namespaces."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_pis=True,
        remove_comments=True,
    )
    return etree.fromstring(content.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n"), parser)


def _xml_leaves(element: etree._Element, pointer: str, depth: int) -> Iterator[BodyValue]:
    for name, value in element.attrib.items():

        def write_attribute(altered: Value | None, name: str = str(name)) -> None:
            element.set(name, "" if altered is None else str(altered))

        if value:
            yield BodyValue(
                f"{pointer}/@{etree.QName(name).localname}", str(value), write_attribute
            )
    text = element.text
    if text and text.strip():

        def write_text(altered: Value | None) -> None:
            element.text = None if altered is None else str(altered)

        yield from _nested(text, pointer, write_text, depth) or (
            BodyValue(pointer, text, write_text),
        )
    children = [child for child in element if isinstance(child.tag, str)]
    of_name = Counter(_local(child) for child in children)
    seen: Counter[str] = Counter()
    for child in children:
        name = _local(child)
        seen[name] += 1
        place = f"[{seen[name]}]" if of_name[name] > 1 else ""
        yield from _xml_leaves(child, f"{pointer}/{name}{place}", depth)


def _nested(
    value: Value, pointer: str, write: Callable[[Value | None], None], depth: int
) -> tuple[BodyValue, ...]:
    """Return the leaves of a document that stands as a text in another; none where the text is no document."""
    if (
        not isinstance(value, str)
        or depth == NESTED_MAX
        or not value.lstrip().startswith(_CONTAINERS)
    ):
        return ()
    try:
        if value.lstrip().startswith("<"):
            tree = _xml(value.encode())
            return tuple(
                _printed_again(leaf, write, lambda: etree.tostring(tree, encoding="unicode"))
                for leaf in _xml_leaves(tree, pointer, depth + 1)
            )
        inner = read_json(value.encode())
    except (UnreadableMessageError, etree.XMLSyntaxError, ValueError):
        return ()
    return tuple(
        _json_leaves(inner, pointer, lambda: write(printed_json(inner).decode()), depth + 1)
    )


def _printed_again(
    leaf: BodyValue, write: Callable[[Value | None], None], text: Callable[[], str]
) -> BodyValue:
    def write_through(altered: Value | None) -> None:
        leaf.write(altered)
        write(text())

    return BodyValue(leaf.pointer, leaf.value, write_through)


def _local(element: etree._Element) -> str:
    return str(etree.QName(element).localname)

"""Every number that a message names, with or without events, by its carrier's number fields.

A subscription's notice, a parcel without scans, a rejected member: an erased person must not be
readable there either. A field is `name`, or `parent.name` where the name alone is ambiguous;
`parent` is empty at the top of a message. `a|b`: the first of them that an object prints; `a+b`:
both, joined by a hyphen. `@name` is an attribute in XML. `parent.{}`: its members are named by
numbers.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from lxml import etree

from events.errors import UnreadableMessageError
from events.parsing.forms import form_fields
from events.parsing.json import json_lines, json_values
from events.parsing.text import decoded, scrub, text
from events.parsing.xml import is_xml, read_xml

NUMBERS_MAX: Final = 1000
NUMBER_CHARS_MAX: Final = 200
_X12_TERMINATOR_AT: Final = 105
_KEYS: Final = "{}"
_CONTAINERS: Final = frozenset({dict, list})
_OPENING: Final = ("{", "[", " ", "\n", "\t", "\r")


class _Field(NamedTuple):
    parent: str | None
    names: tuple[tuple[str, ...], ...]
    """Alternatives, each a list of joined parts."""


class _Fields(NamedTuple):
    fields: tuple[_Field, ...]
    keyed: frozenset[str]
    """Names of objects with numbers as member names."""
    names: frozenset[str]
    """All field names."""
    whole_keys: tuple[bytes, ...]
    """Fields with a number as their single value, as keys of a JSON text."""
    part_keys: tuple[bytes, ...]
    """Those of numbers that are joined, and of the objects in `keyed`."""


@lru_cache(maxsize=256)
def _fields(declared: tuple[str, ...]) -> _Fields:
    found = []
    keyed = set()
    for each in declared:
        parent, dot, names = each.rpartition(".")
        if names == _KEYS:
            keyed.add(parent)
            continue
        found.append(
            _Field(
                parent if dot else None, tuple(tuple(name.split("+")) for name in names.split("|"))
            )
        )
    alternatives = [parts for field in found for parts in field.names]
    whole = {parts[0] for parts in alternatives if len(parts) == 1}
    joined = {name for parts in alternatives if len(parts) > 1 for name in parts}
    return _Fields(
        tuple(found),
        frozenset(keyed),
        frozenset(whole | joined),
        _keys(whole),
        _keys(joined | keyed),
    )


def _keys(names: set[str]) -> tuple[bytes, ...]:
    return tuple(f'"{name}"'.encode() for name in sorted(names))


def named_numbers(body: bytes, declared: tuple[str, ...]) -> dict[str, None]:
    """Return the numbers as printed; at most NUMBERS_MAX + 1, none of an unreadable body."""
    found: dict[str, None] = {}
    for number in _printed(body, _fields(declared)):
        if len(number) <= NUMBER_CHARS_MAX:
            found[scrub(number)] = None
            if len(found) > NUMBERS_MAX:
                break
    return found


def names_only(body: bytes, declared: tuple[str, ...], number: str) -> bool:
    """Return whether a JSON text certainly names only this number.

    It compares bytes, so False may be undecided. Without a backslash a key appears in the text
    as it is, and no other text is in quotes with a colon after it. Joined parts of a number are
    never enough.
    """
    if not body.startswith((b"{", b"[")) or b"\\" in body or b"\x00" in body:
        return False
    fields, value = _fields(declared), f':"{number}"'.encode("utf-8", "replace")
    if any(key in body for key in fields.part_keys):
        return False
    return all(
        body.count(key) == body.count(key + value) for key in fields.whole_keys if key in body
    )


def _printed(body: bytes, declared: _Fields) -> Iterator[str]:
    fields = form_fields(body)
    if fields:
        named = {decoded(name): decoded(content) for name, content in fields.items()}
        yield from _in_json(named, declared, wraps=False)
    for content in fields.values() or (body,):
        yield from _printed_in(content, declared)


def _printed_in(body: bytes, declared: _Fields) -> Iterator[str]:
    try:
        if is_xml(body):
            yield from _in_xml(read_xml(body).root, declared.fields)
        elif body.startswith(b"ISA"):
            yield from _in_json(_x12_elements(decoded(body)), declared, wraps=False)
        else:
            # an object within a string has quotes, which are escaped there
            wraps = b"\\" in body
            for value in json_values(body):
                yield from _in_json(value, declared, wraps=wraps)
    except UnreadableMessageError:
        return


def _x12_elements(body: str) -> list[dict[str, dict[str, str]]]:
    """Return the elements of each X12 segment, "01" the first: `B10.02` is a field.

    Its header has a fixed length and the separators.
    """
    if len(body) <= _X12_TERMINATOR_AT:
        return []
    segments = (part.strip().split(body[3]) for part in body.split(body[_X12_TERMINATOR_AT]))
    return [
        {tag: {f"{n:02}": element for n, element in enumerate(elements, start=1)}}
        for tag, *elements in segments
    ]


def _in_json(root: object, declared: _Fields, *, wraps: bool) -> Iterator[str]:
    """Yield the numbers in a JSON value. `wraps`: strings may hold JSON of their own."""
    waiting: list[tuple[str, object]] = [("", root)]
    for parent, value in waiting:
        if type(value) is dict:
            for name in declared.keyed & value.keys():
                if type(value[name]) is dict:
                    yield from (
                        key for key, each in value[name].items() if type(each) in _CONTAINERS
                    )
            if not declared.names.isdisjoint(value):
                for field in declared.fields:
                    if field.parent is None or field.parent == parent:
                        yield from _of_object(value, field)
            waiting += [
                each
                for each in value.items()
                if type(each[1]) in _CONTAINERS or (wraps and _may_wrap(each[1]))
            ]
        elif type(value) is list:
            waiting += [
                (parent, member)
                for member in value
                if type(member) in _CONTAINERS or (wraps and _may_wrap(member))
            ]
        elif type(value) is str:
            waiting += [
                (parent, wrapped) for wrapped in json_lines(value) if type(wrapped) is not str
            ]


def _may_wrap(member: object) -> bool:
    return (
        type(member) is str
        and member.startswith(_OPENING)
        and member.lstrip().startswith(_OPENING[:2])
    )


def _of_object(value: dict[str, Any], field: _Field) -> Iterator[str]:
    for parts in field.names:
        if len(parts) > 1:
            joined = "-".join(part for name in parts if (part := text(value.get(name))))
            printed = [joined] if joined else []
        else:
            named = value.get(parts[0])
            printed = [
                number
                for each in (named if type(named) is list else (named,))
                if (number := text(each))
            ]
        if printed:
            yield from printed
            return


def _in_xml(root: etree._Element, fields: tuple[_Field, ...]) -> Iterator[str]:
    for field in fields:
        if field.parent is None:
            names = [
                alternative[0]
                for alternative in field.names
                if len(alternative) == 1 and not alternative[0].startswith("@")
            ]
            for element in root.iter(*names) if names else ():
                if number := text(element.text):
                    yield number
            continue
        # a field of the document itself has no parent's name
        for parent in root.iter(field.parent) if field.parent else (root,):
            # numbers of several parts are printed in JSON only
            for name in (alternative[0] for alternative in field.names if len(alternative) == 1):
                printed = (
                    [parent.get(name[1:])]
                    if name.startswith("@")
                    else [element.text for element in parent.iterfind(name)]
                )
                if numbers := [number for each in printed if (number := text(each))]:
                    yield from numbers
                    break

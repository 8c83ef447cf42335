"""Compatibility of JSON Schemas: a newer schema may only grow.

No part may be removed, renamed, narrowed, retyped or newly required. It is for schemas of documents
that we write and others read. So a field's types must stay the same (a new null breaks a reader), a
field that was always there must stay so, and lists of words may grow. An unknown keyword may not
change.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Schema = Mapping[str, Any]

_ANNOTATIONS: Final = frozenset(
    {
        "$schema",
        "$id",
        "$comment",
        "title",
        "description",
        "examples",
        "default",
        "deprecated",
        "$defs",
    }
)
_SHAPE: Final = frozenset(
    {"$ref", "anyOf", "type", "enum", "const", "properties", "required", "items"}
)
_UPPER_BOUNDS: Final = frozenset(
    {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}
)
_LOWER_BOUNDS: Final = frozenset(
    {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Shape of a position in a document. `words` None: any value of the types."""

    types: frozenset[str]
    words: frozenset[str] | None
    rules: Mapping[str, Any]
    required: bool


def breaks(old: Schema, new: Schema) -> list[str]:
    """Return every way in which `new` breaks a promise of `old`, a line each.

    Empty if it only grew.
    """
    before, after = shapes(old), shapes(new)
    found = [
        line
        for place, shape in before.items()
        for line in _compared(place, shape, after.get(place))
    ]
    for place, shape in after.items():
        if place not in before and shape.required and _parent(place) in before:
            found.append(f"{place}: new and required; a new field may only be optional")
    return found


def shapes(schema: Schema) -> dict[str, Shape]:
    """Return the shape of every definition (`printed`), field (`printed/location/city`) and member
    of a list (`logged/raw/further/*`).
    """
    return {
        place: shape
        for name, definition in schema.get("$defs", {}).items()
        for place, shape in _walk(name, definition, schema, required=False)
    }


def _walk(
    place: str, given: Schema, root: Schema, *, required: bool
) -> Iterator[tuple[str, Shape]]:
    choices = [_resolved(choice, root) for choice in _choices(_resolved(given, root))]
    yield (
        place,
        Shape(
            types=_types(choices), words=_words(choices), rules=_rules(choices), required=required
        ),
    )
    for choice in choices:
        for name, field in choice.get("properties", {}).items():
            yield from _walk(
                f"{place}/{name}", field, root, required=name in choice.get("required", ())
            )
        if "items" in choice:
            yield from _walk(f"{place}/*", choice["items"], root, required=False)


def _choices(schema: Schema) -> list[Schema]:
    """Return the alternatives of a schema, each with the keywords next to them."""
    if "anyOf" not in schema:
        return [schema]
    siblings = {keyword: value for keyword, value in schema.items() if keyword != "anyOf"}
    return [{**siblings, **choice} for choice in schema["anyOf"]]


def _resolved(schema: Schema, root: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    siblings = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    return {**root["$defs"][schema["$ref"].removeprefix("#/$defs/")], **siblings}


def _types(choices: list[Schema]) -> frozenset[str]:
    found: set[str] = set()
    for choice in choices:
        types = choice.get("type", "any")
        found.update([types] if isinstance(types, str) else types)
    return frozenset(found)


def _words(choices: list[Schema]) -> frozenset[str] | None:
    """Return the words that the choices allow. A null counts as a type, not as a word."""
    listed = [choice for choice in choices if choice.get("type") != "null"]
    if not all("enum" in choice or "const" in choice for choice in listed):
        return None
    return frozenset(
        repr(word)
        for choice in listed
        for word in choice.get("enum", [choice.get("const")])
        if word is not None
    )


def _rules(choices: list[Schema]) -> dict[str, Any]:
    return {
        keyword: value
        for choice in choices
        for keyword, value in choice.items()
        if keyword not in _ANNOTATIONS | _SHAPE
    }


def _compared(place: str, old: Shape, new: Shape | None) -> Iterator[str]:
    if new is None:
        yield f"{place}: removed or renamed"
        return
    if old.types != new.types:
        yield f"{place}: retyped, {_listed(old.types)} became {_listed(new.types)}"
    if new.required and not old.required:
        yield f"{place}: now required; documents without it exist"
    if old.required and not new.required:
        yield f"{place}: no longer required; readers count on it"
    if new.words is not None:
        gone = frozenset() if old.words is None else old.words - new.words
        if old.words is None or gone:
            yield (
                f"{place}: narrowed,"
                f" {'to a list of words' if old.words is None else 'without ' + _listed(gone)}"
            )
    if "format" in old.rules and "format" not in new.rules:
        yield f"{place}: retyped, no longer a {old.rules['format']}"
    for keyword, value in new.rules.items():
        if not _loosened(keyword, old.rules.get(keyword), value):
            yield f"{place}: narrowed by `{keyword}`"


def _loosened(keyword: str, old: object, new: object) -> bool:
    if old == new:
        return True
    if isinstance(old, int | float) and isinstance(new, int | float):
        return (keyword in _UPPER_BOUNDS and new >= old) or (
            keyword in _LOWER_BOUNDS and new <= old
        )
    return keyword == "additionalProperties" and new is True


def _parent(place: str) -> str:
    return place.rpartition("/")[0]


def _listed(words: frozenset[str]) -> str:
    return ", ".join(sorted(words))

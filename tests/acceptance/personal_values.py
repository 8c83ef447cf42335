"""Personal values of a carrier's body, which must never leave the sealed store: under keys of
people, places and numbers, or alike.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from lxml import etree

from events.carriers import CARRIERS

ROOT: Final = Path(__file__).parents[2]
PERSONAL: Final = re.compile(
    r"name|contact|compan|street|address|addr|line_?\d|phone|tel|mobile|mail|postal|postcode|zip|"
    r"plz|sign|recipient|receive[dr]|consignee"
    r"|shipper|sender|attention|tracking|track_?num|awb|waybill|inquiry|barcode|parcel.?(?:id|num)|"
    r"shipment.?(?:id|num)|reference|secret|token",
    re.IGNORECASE,
)
ELSEWHERE: Final = re.compile(
    r"carrier|courier|service|event|status|city|town|country|state|province|description|type|code$|"
    r"slug",
    re.IGNORECASE,
)
"""Keys of the same words whose values are no person's."""
SHAPES: Final = (
    re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    re.compile(r"\+\d[\d ()./-]{7,}\d"),
    re.compile(r"(?<![0-9A-Za-z])(?=(?:[A-Za-z]*\d){8})[0-9A-Z]{10,35}(?![0-9A-Za-z])"),
)
"""E-mail addresses, phone numbers, numbers of parcels: anywhere in a body."""
SHORTEST: Final = 5
SHORT_NUMBER: Final = re.compile(r"[0-9]{5,7}")
"""A postcode, say; as good a process id, port or count of ours."""
LONGEST: Final = 200
WORD: Final = re.compile(r"\w+")


def distinctive(body: bytes) -> bytes:
    """Return the body with each personal short number made longer, so that it
    stands nowhere by chance.
    """
    for number in (value.encode() for value in _personal(body) if SHORT_NUMBER.fullmatch(value)):
        for before, after in ((b'"', b'"'), (b">", b"<")):
            body = body.replace(
                before + number + after, before + number + b"-7041-" + number + after
            )
    return body


def values_of(body: bytes) -> set[str]:
    """Return those of one body, in lower case; of one that cannot be parsed, what looks like
    one.
    """
    return {
        value
        for value in _personal(body)
        if SHORTEST <= len(value) <= LONGEST
        and not _is_ours(value)
        and not _is_a_time(value)
        and not SHORT_NUMBER.fullmatch(value)
    }


@cache
def _personal(body: bytes) -> frozenset[str]:
    text = body.decode("utf-8", "replace")
    found = {match[0] for shape in SHAPES for match in shape.finditer(text)}
    found |= {
        value for key, value in _members(body) if PERSONAL.search(key) and not ELSEWHERE.search(key)
    }
    return frozenset(value.strip().casefold() for value in found)


def leaks(values: set[str], output: str) -> set[str]:
    """Return which of them stand in the output, as whole words."""
    lowered = output.casefold()
    words = set(WORD.findall(lowered))
    candidates = {value for value in values if set(WORD.findall(value)) <= words}
    return {
        value for value in candidates if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", lowered)
    }


def excerpt(value: str, output: str) -> str:
    """Return where a value stands first in the output, with what is around it."""
    position = output.casefold().find(value)
    return output[max(0, position - 60) : position + len(value) + 60]


def _members(body: bytes) -> Iterator[tuple[str, str]]:
    try:
        yield from _of_json("", json.loads(body))
    except (ValueError, RecursionError):
        yield from _of_xml(body)


def _of_json(key: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for name, member in value.items():
                yield from _of_json(name, member)
        case list():
            for member in value:
                yield from _of_json(key, member)
        case str() | int() | float():
            yield key, str(value)


def _of_xml(body: bytes) -> Iterator[tuple[str, str]]:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=False)
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return
    for element in root.iter("*"):
        yield etree.QName(element).localname, element.text or ""
        yield from ((str(name), str(value)) for name, value in element.attrib.items())


def _is_a_time(value: str) -> bool:
    return (
        re.fullmatch(r"[\d:+/.tz -]{5,40}", value) is not None
        and re.match(r"(?:19|20)\d\d\D?[01]\d", value) is not None
    )


@cache
def _our_words() -> frozenset[str]:
    """Return words that stand in the code: in the output they are our own."""
    files = [
        path
        for folder in ("statesvc", "events/entry", "projections")
        for path in (ROOT / folder).rglob("*.py")
    ]
    return frozenset(
        word for path in files for word in WORD.findall(path.read_text("utf-8").casefold())
    )


def _is_ours(value: str) -> bool:
    words = WORD.findall(value)
    return value in CARRIERS or all(word in _our_words() for word in words)

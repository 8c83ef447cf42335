"""XML bodies of strangers, parsed without ever expanding, including or fetching.

Elements have their local names (a prefix or a namespace that a proxy changed must not lose a scan);
`namespaces` holds the original namespaces. Comments and processing instructions are removed, so
every node is an element.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lxml import etree

from events.errors import Cause, UnreadableMessageError

ELEMENTS_MAX: Final = 50_000
ATTRIBUTES_MAX: Final = 256

XINCLUDE: Final = "http://www.w3.org/2001/XInclude"

# `bare`: it names the root and no more, so it declares no entities.
_PROLOG_WITH_DOCTYPE: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s++|<\?.*?\?>|<!--.*?-->)*+<!DOCTYPE(?P<bare>\s++[^\s<>\[\]\"']++\s*+>)?",
    re.DOTALL | re.IGNORECASE,
)
_ENCODING: Final = re.compile(rb"<\?xml[^>]*encoding|\xff\xfe|\xfe\xff")
_LATIN_1: Final = re.compile(
    rb"<\?xml[^>]*encoding=.(?:iso-8859-1|latin-?1|windows-1252|us-ascii)[^a-z0-9-]", re.IGNORECASE
)
_WRAPPERS: Final = frozenset({"wrapper", "Envelope", "Body"})
_START: Final = re.compile(rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\x00\s]*<")


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed body: its root (local names only) and the namespaces that its elements had."""

    root: etree._Element
    namespaces: frozenset[str]


def is_xml(body: bytes) -> bool:
    """Return whether the first character of the body is `<`."""
    return _START.match(body) is not None


def read_xml(body: bytes) -> Document:
    """Parse XML. Raises UnreadableMessageError: `unreadable`, `refused_xml` (a DOCTYPE with
    declarations, XInclude) or `too_complex`.
    """
    body = _without_margin(body)
    if not body:
        raise UnreadableMessageError(Cause.UNREADABLE, "the body is empty")
    doctype = _PROLOG_WITH_DOCTYPE.match(body)
    # before the parser: entities are declared there, and lxml would expand internal ones
    if doctype is not None and not doctype["bare"]:
        raise UnreadableMessageError(
            Cause.REFUSED_XML, "a DOCTYPE with declarations, inside or elsewhere"
        )
    parser = etree.XMLParser(
        encoding="utf-8" if _is_utf8_despite_its_prolog(body) else None,
        # each by itself: none of them relies on another
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        # keeps libxml2's own bounds of depth and of a text's length
        huge_tree=False,
        remove_pis=True,
        remove_comments=True,
    )
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        raise UnreadableMessageError(Cause.UNREADABLE, _why_not(body, error)) from error
    # in an encoding that the pattern above cannot read, as UTF-16
    if doctype is None and root.getroottree().docinfo.internalDTD is not None:
        raise UnreadableMessageError(
            Cause.REFUSED_XML, "a DOCTYPE that could not be seen before it was parsed"
        )
    namespaces = _strip(root)
    if XINCLUDE in namespaces:
        raise UnreadableMessageError(Cause.REFUSED_XML, "an XInclude element")
    return Document(root, namespaces)


def _is_utf8_despite_its_prolog(body: bytes) -> bool:
    """Return whether a body declared as Latin-1 holds UTF-8, which Latin-1 text
    hardly ever is by chance.
    """
    return (
        _LATIN_1.match(body) is not None and not body.isascii() and _undecodable_byte(body) is None
    )


def _undecodable_byte(body: bytes) -> int | None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def _why_not(body: bytes, error: etree.XMLSyntaxError) -> str:
    byte = _undecodable_byte(body) if _ENCODING.match(body) is None else None
    return f"not XML at line {error.lineno}" if byte is None else f"not UTF-8 at byte {byte}"


def _without_margin(body: bytes) -> bytes:
    """Strip the blank lines that senders print before the declaration, with or without a
    BOM, which XML forbids.
    """
    if body.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in body[:4]:
        return body
    return body.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n")


def _strip(root: etree._Element) -> frozenset[str]:
    namespaces = set()
    for count, element in enumerate(root.iter(), start=1):
        if count > ELEMENTS_MAX:
            raise UnreadableMessageError(Cause.TOO_COMPLEX, f"more than {ELEMENTS_MAX} elements")
        tag = element.tag
        # comments and instructions were removed, so it can only be an unresolved entity
        if type(tag) is not str:
            raise UnreadableMessageError(Cause.REFUSED_XML, "an entity")
        if tag[0] == "{":
            namespace, _, local = tag[1:].partition("}")
            namespaces.add(namespace)
            element.tag = local
        if len(element.attrib) > ATTRIBUTES_MAX:
            raise UnreadableMessageError(
                Cause.TOO_COMPLEX, f"an element of more than {ATTRIBUTES_MAX} attributes"
            )
    return frozenset(namespaces)


def text_at(element: etree._Element, *paths: str) -> str | None:
    """Return the trimmed text of the first of `paths` (`A/B`, local names; `.` is the
    element itself) that has any.
    """
    for path in paths:
        found = element.text if path == "." else element.findtext(path)
        if found and (found := found.strip()):
            return found
    return None


def texts(element: etree._Element) -> dict[str, str]:
    """Return trimmed texts of the children that have any, by name; the first of a name counts.

    Faster than many `text_at`.
    """
    found: dict[str, str] = {}
    for child in element:
        text = child.text
        if text and (text := text.strip()):
            found.setdefault(child.tag, text)
    return found


def body_of(document: Document) -> etree._Element | None:
    """Return the first element inside a SOAP body, or the root of a document without envelope;
    None for an empty body.
    """
    if document.root.tag != "Envelope":
        return document.root
    body = document.root.find("Body")
    return None if body is None else next(iter(body), None)


def answers(document: Document) -> Iterator[etree._Element]:
    """Yield the elements inside SOAP bodies and bare `wrapper`s, or the root.

    A wrapper prints several answers as a document.
    """
    waiting = [document.root]
    while waiting:
        element = waiting.pop(0)
        if element.tag in _WRAPPERS:
            waiting.extend(child for child in element if child.tag != "Header")
        else:
            yield element


def elements(element: etree._Element, path: str) -> Iterator[tuple[int, etree._Element]]:
    return enumerate(element.iterfind(path))

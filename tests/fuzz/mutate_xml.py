"""Mutations of XML bodies that know their structure."""

import copy
import io
import re
from collections.abc import Callable
from random import Random
from typing import Final

from lxml import etree

from tests.fuzz.trouble import NUMBERS, TEXTS, TIMES

ELEMENTS_MAX: Final = 20_000
ILLEGIBLE: Final = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd]+")

_PROLOGS: Final = (
    b"",
    b"\n\n ",
    b'<?xml version="1.0"?>',
    b'<?xml version="1.0" encoding="UTF-16"?>',
    b'<?xml version="1.0" encoding="GBK"?>',
    b'<?xml version="1.0" encoding="nonsense"?>',
    b'<?xml version="1.1"?>',
    b"<!-- a --><?b c?>",
    b'<!DOCTYPE a [<!ENTITY b "c">]>',
    b'<!DOCTYPE a SYSTEM "http://localhost:1/a.dtd">',
    b"\xef\xbb\xbf",
)


def mutated(body: bytes, rng: Random) -> bytes:
    """Return the body with one to four changes, in one of several encodings.

    Raises ValueError for another text.
    """
    root = _parsed(body)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        found = [element for element in root.iter() if isinstance(element.tag, str)]
        rng.choice(CHANGES)(rng.choice(found), rng)
        if sum(1 for _ in root.iter()) > ELEMENTS_MAX:
            break
    return _printed(root, rng)


def amplified(body: bytes, rng: Random, size: int) -> bytes:
    """Return the body with one element repeated until it has about `size` bytes.

    Raises ValueError for another text.
    """
    root = _parsed(body)
    found = [element for element in root.iterdescendants() if isinstance(element.tag, str)]
    element = rng.choice(found or [root])
    parent = element.getparent()
    for _ in range(0 if parent is None else size // len(etree.tostring(element))):
        element.addnext(copy.deepcopy(element))
    return etree.tostring(root)


def _parsed(body: bytes) -> etree._Element:
    try:
        return etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise ValueError("not XML") from error


def _legible(text: str) -> str:
    """Drop what XML cannot print."""
    return ILLEGIBLE.sub("", text)


def _replace_text(element: etree._Element, rng: Random) -> None:
    element.text = _legible(str(rng.choice((*TEXTS, *TIMES, *NUMBERS))))


def _remove(element: etree._Element, rng: Random) -> None:
    del rng
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _repeat(element: etree._Element, rng: Random) -> None:
    parent = element.getparent()
    if parent is not None:
        for _ in range(rng.choice((1, 2, 50))):
            parent.append(copy.deepcopy(element))


def _empty(element: etree._Element, rng: Random) -> None:
    tail = element.tail
    element.clear()
    element.tail = rng.choice((tail, "text between", None))


def _rename(element: etree._Element, rng: Random) -> None:
    local = str(element.tag).rpartition("}")[2]
    element.tag = rng.choice(
        (local, local.upper(), local.lower(), f"{{urn:other}}{local}", "Envelope", "x")
    )


def _wrap(element: etree._Element, rng: Random) -> None:
    parent = element.getparent()
    if parent is None:
        return
    around = etree.Element(rng.choice(("Wrapper", "Body", str(element.tag))))
    parent.replace(element, around)
    for _ in range(rng.choice((0, 0, 100, 240))):
        inner = etree.SubElement(around, "x")
        around = inner
    around.append(element)


def _adopt(element: etree._Element, rng: Random) -> None:
    """Copy some other element into this one."""
    others = [other for other in element.getroottree().iter() if isinstance(other.tag, str)]
    element.append(copy.deepcopy(rng.choice(others)))


def _decorate(element: etree._Element, rng: Random) -> None:
    for number in range(rng.choice((1, 3, 300))):
        element.set(f"a{number}", _legible(rng.choice(TEXTS))[:50])
    if rng.random() < 0.3:
        element.set("{http://www.w3.org/2001/XMLSchema-instance}nil", "true")


def _interrupt(element: etree._Element, rng: Random) -> None:
    """Put a comment, an instruction or an entity into the middle of a text."""
    inserted = rng.choice(
        (
            etree.Comment("c"),
            etree.ProcessingInstruction("p", "i"),
            etree.Entity("nbsp"),
            etree.Entity("amp"),
        )
    )
    inserted.tail = element.text
    element.text = None
    element.insert(0, inserted)


def _spoil(element: etree._Element, rng: Random) -> None:
    text = element.text or ""
    at = rng.randrange(len(text) + 1)
    element.text = _legible(text[:at] + rng.choice(TEXTS)[:200] + text[at + rng.choice((0, 1)) :])


CHANGES: Final[tuple[Callable[[etree._Element, Random], None], ...]] = (
    _replace_text,
    _replace_text,
    _replace_text,
    _remove,
    _repeat,
    _empty,
    _rename,
    _wrap,
    _adopt,
    _decorate,
    _interrupt,
    _spoil,
)


def _printed(root: etree._Element, rng: Random) -> bytes:
    if rng.random() < 0.7:
        return etree.tostring(root)
    if rng.random() < 0.5:
        encoding = rng.choice(("UTF-8", "UTF-16", "ISO-8859-1", "windows-1252", "GBK"))
        printed = io.BytesIO()
        root.getroottree().write(printed, encoding=encoding, xml_declaration=rng.random() < 0.7)
        return printed.getvalue()
    return rng.choice(_PROLOGS) + etree.tostring(root, encoding="UTF-8")

"""Clean text out of values that carriers print.

Whatever leaves here can be stored by PostgreSQL as text.
"""

import re
from html import unescape
from typing import Final

REPLACEMENT: Final = "\ufffd"

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_TAG: Final = re.compile(r"<[^<>]{0,200}>")
_SIGNER_SENTINELS: Final = frozenset(
    {
        "",
        "null",
        "none",
        "n/a",
        "na",
        "nsr",
        "string",
        "signature not required",
        "signature not req",
        "no signature required",
        "signature release on file",
        "signature on file",
        "00:00:00",
    }
)


def text(value: object) -> str | None:
    """Return text as printed, trimmed; None for absent, empty, boolean, float and structured
    values.

    An integer is taken (numbers and codes are printed without quotes at times); a float
    never (digits may be lost).
    """
    if type(value) is str:
        return value.strip() or None
    # `type`, because True is an int, too
    if type(value) is int:
        return str(value)
    return None


def text_unless(value: object, sentinels: frozenset[str]) -> str | None:
    """Return `text`, but None where the lower-case text is one of `sentinels`
    (`null`, `string`, ...).
    """
    found = text(value)
    return None if found is None or found.lower() in sentinels else found


def scrub(value: str) -> str:
    """Replace NUL and lone surrogates by U+FFFD."""
    return _UNSTORABLE.sub(REPLACEMENT, value)


def decoded(content: bytes) -> str:
    """Return bytes as text that can be stored, whatever they are."""
    return scrub(content.decode("utf-8", "replace"))


def collapse(value: str) -> str:
    """Collapse white space (non-breaking included) into single blanks, and trim the ends."""
    return " ".join(value.split())


def without_markup(value: str | None) -> str | None:
    """Return text without HTML tags, entities resolved, spaces collapsed."""
    if value is None:
        return None
    return collapse(unescape(_TAG.sub(" ", value))) or None


def signer(value: object) -> str | None:
    """Return a signer's name; None for carriers' placeholders."""
    found = text(value)
    if found is None:
        return None
    found = collapse(found.lstrip(". "))
    return None if found.casefold() in _SIGNER_SENTINELS else found

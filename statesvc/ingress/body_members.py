"""The members of a JSON object as the bytes that stand in the body: a signature over one of them is over those bytes, not over a value."""

import json
import re
from typing import Final

_DECODER: Final = json.JSONDecoder()
_BLANK: Final = re.compile(r"[ \t\r\n]*")


def members_as_sent(body: bytes) -> dict[str, str] | None:
    """Member -> its text; None for a body that is no JSON object of UTF-8, is nested too deeply or names a member twice."""
    try:
        text = body.decode("utf-8-sig")
        return _members(text)
    except (UnicodeDecodeError, ValueError, RecursionError):
        return None


def _members(text: str) -> dict[str, str] | None:
    at = _expect(text, _skip(text, 0), "{")
    found: dict[str, str] = {}
    at = _skip(text, at)
    while text[at : at + 1] != "}":
        if found:
            at = _skip(text, _expect(text, at, ","))
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _expect(text, _skip(text, at), ":"))
        _, end = _DECODER.raw_decode(text, at)
        if not isinstance(name, str) or name in found:
            return None
        found[name] = text[at:end]
        at = _skip(text, end)
    return found if _skip(text, at + 1) == len(text) else None


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise ValueError(f"no {sign} where one is due")
    return at + 1

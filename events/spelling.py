"""Spelling of texts and numbers for comparison, and of digests. Pure; final from the first release, for ids are made of it."""

import re
import unicodedata
from collections.abc import Collection
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_SHORT_LENGTH: Final = 26
_AS_DIGITS: Final = bytes(
    b"0123456789abcdefghijklmnopqrstuv"[_ALPHABET.index(chr(each))] if chr(each) in _ALPHABET else 0
    for each in range(256)
)
"""Digits of base 32 as `int` reads them; what is none becomes zero bytes, which are no digits."""
_ISOLATES: Final = re.compile("[\u2066-\u2069]")
_IGNORED: Final = re.compile(
    "[\\s\\-\u00ad\u180e\u200b-\u200f\u2010-\u2015\u202a-\u202e\u2060-\u2064\u2212\ufeff]"
)


_LONGEST_WORD: Final = 64


def nearest(written: str, words: Collection[str]) -> str | None:
    """Return the word that `written` was probably meant for, None where nothing is near."""
    # comparing takes the square of the length
    if len(written) > _LONGEST_WORD:
        return None
    return next(iter(get_close_matches(written.lower(), words, n=1)), None)


@lru_cache(maxsize=8192)
def spelled(printed: str) -> str:
    """Return a text as it is compared: case, width and blanks do not matter."""
    if not printed.isascii():
        printed = unicodedata.normalize("NFKC", printed)
    return " ".join(printed.casefold().split())


@lru_cache(maxsize=4096)
def normalize_number(printed: str) -> str:
    """Return a tracking number as every carrier's is compared: NFKC, upper case, without white space, zero-width characters and hyphens."""
    if printed.isascii() and printed.isalnum():
        return printed.upper()
    number = _IGNORED.sub("", unicodedata.normalize("NFKC", printed).upper())
    return number if number == printed else normalize_number(number)


def sought_forms(sought: str) -> set[str]:
    """Return a number that is sought, with and without the marks that pages put around a text of another direction.

    In a number that is said they stay: ids are made of it.
    """
    return {sought, _ISOLATES.sub("", sought)}


def stands_alone(number: str, text: str) -> bool:
    """Return whether a text holds a normalized number in any spelling, and not as part of a longer one."""
    spellings = f"{_IGNORED.pattern}*".join(map(re.escape, number))
    return (
        re.search(rf"(?<![^\W_]){spellings}(?![^\W_])", unicodedata.normalize("NFKC", text).upper())
        is not None
    )


def short(digest: bytes) -> str:
    """Return the first 26 characters of lower-case base32, two characters (ten bits) at a time."""
    bits = int.from_bytes(digest[:17]) >> 6
    return "".join([_PAIRS[bits >> shift & 1023] for shift in range(120, -10, -10)])


def is_short(text: str, digest: bytes) -> bool:
    """Return whether a text is `short` of a digest; quicker than encoding it."""
    try:
        return (
            len(text) == _SHORT_LENGTH
            and int(text.encode().translate(_AS_DIGITS), 32) == int.from_bytes(digest[:17]) >> 6
        )
    except ValueError:
        return False

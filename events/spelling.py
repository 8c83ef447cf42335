"""Spelling of texts and numbers for comparison, and of digests.

Pure; final from the first release, for ids are made of it.
"""

import re
import unicodedata
from collections.abc import Collection
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_SHORT_LENGTH: Final = 26
# Base 32 digits as `int` reads them; other bytes become zero, which is no digit.
_AS_DIGITS: Final = bytes(
    b"0123456789abcdefghijklmnopqrstuv"[_ALPHABET.index(chr(each))] if chr(each) in _ALPHABET else 0
    for each in range(256)
)
_ISOLATES: Final = re.compile("[\u2066-\u2069]")
_IGNORED: Final = re.compile(
    "[\\s\\-\u00ad\u180e\u200b-\u200f\u2010-\u2015\u202a-\u202e\u2060-\u2064\u2212\ufeff]"
)


_LONGEST_WORD: Final = 64


def nearest(written: str, words: Collection[str]) -> str | None:
    """Return the word probably meant by `written`; None where none is near."""
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
    """Return a tracking number as every carrier's is compared: NFKC, upper case, without white
    space, zero-width characters and hyphens.
    """
    if printed.isascii() and printed.isalnum():
        return printed.upper()
    number = _IGNORED.sub("", unicodedata.normalize("NFKC", printed).upper())
    return number if number == printed else normalize_number(number)


# Numbers as labels print them in barcodes, with their form elsewhere.
BARCODES: Final = (
    # FedEx Ground 96, and the 34 digits of FedEx Express and Ground: the number stands at the end
    (r"96\d{5}(\d{15})", r"\1"),
    (r"96\d{8}(\d{12})", r"\1"),
    (r"\d{22}(\d{12})", r"\1"),
    (r"\d{19}(\d{15})", r"\1"),
    # FedEx fills its twelve digits with zeros
    (r"0{3}(\d{12})", r"\1"),
    (r"0{8}(\d{12})", r"\1"),
    # a shipping container code with and without its application identifier
    (r"00(\d{18})", r"\1"),
    (r"(\d{18})", r"00\1"),
)
_BARCODES: Final = tuple((re.compile(barcode), number) for barcode, number in BARCODES)
_BRACKETS: Final = re.compile(r"[()]")


def sought_forms(sought: str) -> set[str]:
    """Return the forms of a searched number: as it is, and as on labels.

    Without the marks that pages put around a text of another direction. In stated numbers they
    stay: ids are made of them.
    """
    plain = _ISOLATES.sub("", sought)
    bare = normalize_number(_BRACKETS.sub("", plain))
    found = {sought, plain, bare}
    for barcode, number in _BARCODES:
        if (match := barcode.fullmatch(bare)) is not None:
            found.add(match.expand(number))
    return found


def stands_alone(number: str, text: str) -> bool:
    """Return whether a text holds a normalized number in any spelling, outside a longer number."""
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

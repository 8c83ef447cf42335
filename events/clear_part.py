"""Division of a carrier's statement into a clear and a sealed part. Pure; final.

Clear, for ever: type, code, reason and further codes as far as they look like codes, city, region,
country, a facility's code, and a coarse prefix of the postcode where the country has one defined.
Sealed: all texts, the exact postcode, the signer. A text in the place of a code is replaced by its
keyed digest (`text-` and 26 characters), here and in identities: equal texts have equal digests,
and `restored` finds the texts that a carrier's tables know, so that an erased event can be read
again.
"""

import csv
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from events.event import NOWHERE, EventPlace, Raw
from events.spelling import short, spelled

# A keyed digest (HMAC-SHA256 under the installation's digest key).
Digest = Callable[[bytes], bytes]

# Replaces any text in place of a code in lists of codes, such as dead letters. Otherwise every name
# would be a code.
TEXT: Final = "text"

STAND_IN: Final = re.compile(r"text-[a-z2-7]{26}", re.ASCII)
_SENTENCE: Final = re.compile(r"<[a-zA-Z/!][^<>]{0,200}>|\S\s+\S.*[.!?]\s*\Z", re.DOTALL)
_CODE: Final = re.compile(r"(?!\+?[0-9]{9,}\Z)[A-Za-z0-9_.:/+=#*?~-]{0,80}", re.ASCII)


class Split(NamedTuple):
    """A statement's raw fields and place in clear; the last two are as printed, None where the
    clear ones are the same.
    """

    raw: Raw
    place: EventPlace
    sealed_raw: Raw | None
    sealed_place: EventPlace | None


@lru_cache(maxsize=4096)
def looks_like_code(printed: str) -> bool:
    """Return whether the printed text is a code: an ASCII word that cannot be a phone number."""
    return _CODE.fullmatch(printed) is not None


@lru_cache(maxsize=4096)
def is_sentence(printed: str) -> bool:
    """Return whether the printed text is prose: with markup, or several words that
    end as a sentence does.
    """
    return _SENTENCE.search(printed) is not None


def is_stand_in(code: str | None) -> bool:
    """Return whether a clear code is the digest of a text."""
    return code is not None and STAND_IN.fullmatch(code) is not None


def listed_code(code: str | None) -> str | None:
    """Return a clear code as in lists of codes: all texts are equal."""
    return TEXT if is_stand_in(code) else code


def stand_in(text: str, carrier_id: str, digest: Digest) -> str:
    """Return the stand-in for a text.

    Case, width, blanks and a full stop at its end do not matter.
    """
    compared = f"text\x1f{carrier_id}\x1f{spelled(text).rstrip('.')}"
    return f"{TEXT}-{short(digest(compared.encode('utf-8', 'replace')))}"


def split(raw: Raw, place: EventPlace, *, carrier_id: str, digest: Digest) -> Split:
    clear, sealed_raw = _raw_parts(raw, carrier_id, digest)
    shown, sealed_place = _place_parts(place, carrier_id, digest)
    return Split(clear, shown, sealed_raw, sealed_place)


@lru_cache(maxsize=8192)
def _raw_parts(raw: Raw, carrier_id: str, digest: Digest) -> tuple[Raw, Raw | None]:
    clear = clear_raw(raw, carrier_id, digest)
    return clear, None if clear is raw else raw


@lru_cache(maxsize=8192)
def _place_parts(
    place: EventPlace, carrier_id: str, digest: Digest
) -> tuple[EventPlace, EventPlace | None]:
    clear = clear_place(place, carrier_id, digest)
    return clear, None if clear is place else place


def clear_raw(raw: Raw, carrier_id: str, digest: Digest) -> Raw:
    """Replace texts by their stand-ins; return the same object where all are codes."""
    if all(
        code is None or looks_like_code(code)
        for code in (raw.type, raw.code, raw.reason, *raw.further)
    ):
        return raw

    def clear(code: str) -> str:
        return code if looks_like_code(code) else stand_in(code, carrier_id, digest)

    return Raw(
        type=None if raw.type is None else clear(raw.type),
        code=None if raw.code is None else clear(raw.code),
        reason=None if raw.reason is None else clear(raw.reason),
        further=tuple(map(clear, raw.further)),
    )


def clear_place(place: EventPlace, carrier_id: str, digest: Digest) -> EventPlace:
    """Return the clear part; the same object where no part of it is sealed."""
    facility = place.facility
    is_code = facility is None or looks_like_code(facility)
    if place.postal_code is None and is_code:
        return place
    clear = EventPlace(
        city=place.city,
        region=place.region,
        postal_code=postal_prefix(place.country, place.postal_code),
        country=place.country,
        facility=facility
        if facility is None or is_code
        else stand_in(facility, carrier_id, digest),
    )
    return NOWHERE if clear == NOWHERE else clear


@lru_cache(maxsize=8192)
def postal_prefix(country: str | None, postal_code: str | None) -> str | None:
    """Return a part of the postcode that names an area of many thousands.

    None where none is defined, or the code is none of the country's.
    """
    shape = _shapes().get(country or "")
    if shape is None or postal_code is None:
        return None
    found = shape.fullmatch("".join(unicodedata.normalize("NFKC", postal_code).upper().split()))
    return None if found is None else found[1]


def known_texts(texts: Iterable[str], carrier_id: str, digest: Digest) -> dict[str, str]:
    """Return the texts that a carrier's tables know, by their stand-ins."""
    return {stand_in(text, carrier_id, digest): text for text in texts}


def restored(raw: Raw, known: Mapping[str, str]) -> Raw:
    """Clear raw fields with the texts that are known in their places."""

    def text(code: str | None) -> str | None:
        return None if code is None else known.get(code, code)

    return Raw(
        type=text(raw.type),
        code=text(raw.code),
        reason=text(raw.reason),
        further=tuple(known.get(code, code) for code in raw.further),
    )


@cache
def _shapes() -> dict[str, re.Pattern[str]]:
    rows = csv.DictReader(
        files("events").joinpath("postal_prefixes.csv").read_text("utf-8").splitlines()
    )
    return {row["country"]: re.compile(row["postcode"], re.ASCII) for row in rows}

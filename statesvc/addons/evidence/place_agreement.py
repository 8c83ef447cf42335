"""Comparison of the place of a delivery, as the carrier states it, with the merchant's.

Pure; by spelling, not by map.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from events.parsing.cities import spelled_city
from events.spelling import spelled
from statesvc.addons.evidence.bundle_entry import BundleEntry
from statesvc.addons.evidence.merchant_statement import ShipTo

_PREFIX_MIN: Final = 3
_COUNTRY_LENGTH: Final = 2


class Agreement(StrEnum):
    AGREES = "agrees"
    IN_PART = "agrees_in_part"
    """One states the beginning of what the other states: a postcode that is shown in part, or a ZIP
    code without its last four digits.
    """
    DIFFERS = "differs"
    NOT_COMPARABLE = "cannot_be_compared"


@dataclass(frozen=True, slots=True)
class PlaceComparison:
    """One part of the place. `why`: the missing value if it cannot be compared."""

    part: str
    carrier: str | None
    merchant: str | None
    agreement: Agreement
    why: str = ""


def compare_places(delivery: BundleEntry | None, ship_to: ShipTo) -> Iterator[PlaceComparison]:
    """Compare city, postcode and country of the delivery's scan with the merchant's address."""
    stated = {} if delivery is None else delivery.location
    for part in ("city", "postal_code", "country"):
        merchant: str | None = getattr(ship_to, part) or None
        carrier = stated.get(part)
        if carrier is None:
            missing = "no delivery was reported" if delivery is None else "the carrier gave none"
            yield PlaceComparison(part, None, merchant, Agreement.NOT_COMPARABLE, missing)
        elif merchant is None:
            yield PlaceComparison(
                part, carrier, None, Agreement.NOT_COMPARABLE, "the merchant gave none"
            )
        else:
            agreement, why = _COMPARISONS[part](carrier, merchant)
            yield PlaceComparison(part, carrier, merchant, agreement, why)


def _cities(carrier: str, merchant: str) -> tuple[Agreement, str]:
    """Compare cities without case, accents and punctuation.

    Carriers print a street or a region around the city: between commas.
    """
    # no transliteration: a wrong one would read as a contradiction
    if not _scripts(carrier) & _scripts(merchant):
        return Agreement.NOT_COMPARABLE, "they are written in different scripts"
    wanted = _spellings(merchant)
    if any(wanted & _spellings(piece) for piece in (carrier, *carrier.split(","))):
        return Agreement.AGREES, ""
    return Agreement.DIFFERS, ""


def _postcodes(carrier: str, merchant: str) -> tuple[Agreement, str]:
    first, second = (
        "".join(filter(str.isalnum, unicodedata.normalize("NFKC", code).upper()))
        for code in (carrier, merchant)
    )
    if first == second:
        return Agreement.AGREES, ""
    shorter, longer = sorted((first, second), key=len)
    # shorter beginnings are shared by half a country
    if len(shorter) >= _PREFIX_MIN and longer.startswith(shorter):
        return Agreement.IN_PART, f"the first {len(shorter)} characters are the same"
    return Agreement.DIFFERS, ""


def _countries(carrier: str, merchant: str) -> tuple[Agreement, str]:
    if len(carrier) != _COUNTRY_LENGTH:
        return Agreement.NOT_COMPARABLE, "the carrier printed no country code"
    return Agreement.AGREES if carrier.upper() == merchant.upper() else Agreement.DIFFERS, ""


_COMPARISONS: Final = {"city": _cities, "postal_code": _postcodes, "country": _countries}


def _spellings(name: str) -> set[str]:
    """Return the ways in which a city's name may be written: `München` also
    `Muenchen`, `St.` also `Saint`.
    """
    umlauts = (
        unicodedata.normalize("NFC", name)
        .casefold()
        .translate({ord("ä"): "ae", ord("ö"): "oe", ord("ü"): "ue", ord("å"): "aa"})
    )
    latin = {spelled_city(name), spelled_city(umlauts)}
    found = {
        " ".join({"st": "saint", "ste": "sainte"}.get(word, word) for word in each.split())
        for each in latin
        if each
    }
    # a name without Latin letters is compared as it is written
    return found or {spelled(name)} - {""}


def _scripts(text: str) -> set[str]:
    """Return the scripts, by the first word of each character's name: LATIN, CJK, ARABIC."""
    return {
        unicodedata.name(character, "UNNAMED").split()[0]
        for character in text
        if character.isalpha()
    }

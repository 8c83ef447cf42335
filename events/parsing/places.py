"""Places as carriers print them, and the country that a name or code of three letters means."""

import csv
from functools import cache, lru_cache
from importlib.resources import files

from events.event import NOWHERE, EventPlace
from events.parsing.text import text


@cache
def _countries() -> dict[str, str]:
    rows = csv.DictReader(
        files("events.parsing").joinpath("countries.csv").read_text("utf-8").splitlines()
    )
    return {
        name.casefold(): row["alpha_2"]
        for row in rows
        for name in (row["alpha_3"], row["name"])
        if name
    }


@cache
def known_countries() -> frozenset[str]:
    """Return the codes of ISO 3166-1 alpha-2."""
    return frozenset(_countries().values())


def country_code(value: object) -> str | None:
    """Return ISO 3166-1 alpha-2 for a code of two or three letters or an English name;
    other text as printed.
    """
    found = text(value)
    if found is None:
        return None
    if len(found) == 2:
        return found.upper()
    return _countries().get(found.casefold(), found)


def place(
    *,
    city: object = None,
    region: object = None,
    postal_code: object = None,
    country: object = None,
    facility: object = None,
) -> EventPlace:
    """Build a place from any printed fields; `NOWHERE` without any."""
    return _place(text(city), text(region), text(postal_code), text(country), text(facility))


@lru_cache(maxsize=8192)
def _place(
    city: str | None,
    region: str | None,
    postal_code: str | None,
    country: str | None,
    facility: str | None,
) -> EventPlace:
    found = EventPlace(
        city=city,
        region=region,
        postal_code=postal_code,
        country=country_code(country),
        facility=facility,
    )
    return NOWHERE if found == NOWHERE else found

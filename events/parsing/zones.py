"""The time zone of a place, as far as country, region and postal code decide it.

`zones.csv`: one row for a country with one zone (or one where nearly every parcel is), rows by state for US, CA, AU, BR, MX, RU;
`split` marks states with two zones. `postal_zones.csv`: the prefixes that decide inside those. Other countries with several
zones are not known.
"""

import csv
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from events.event import EventPlace

_PREFIX_LENGTH: Final = {"CA": 1, "ES": 2, "PT": 2, "US": 3}


class LocalZone(NamedTuple):
    """A zone, and whether the place leaves no doubt about it."""

    zone: ZoneInfo
    certain: bool


def zone_of(place: EventPlace) -> LocalZone | None:
    """The zone of a place; None where it says too little."""
    if place.country is None:
        return None
    return zone_at(place.country, place.region, place.postal_code)


@lru_cache(maxsize=4096)
def zone_at(country: str, region: str | None, postal_code: str | None) -> LocalZone | None:
    """As `zone_of`; `country` is ISO 3166-1 alpha-2."""
    length = _PREFIX_LENGTH.get(country, 0)
    if length and postal_code:
        by_postal = _postal_zones().get((country, postal_code[:length]))
        if by_postal is not None:
            return LocalZone(by_postal, certain=True)
    return _zones().get((country, (region or "").upper())) or _zones().get((country, ""))


@cache
def _zones() -> dict[tuple[str, str], LocalZone]:
    return {(row["country"], row["region"]): LocalZone(ZoneInfo(row["zone"]), certain=not row["split"]) for row in _rows("zones.csv")}


@cache
def _postal_zones() -> dict[tuple[str, str], ZoneInfo]:
    return {(row["country"], row["prefix"]): ZoneInfo(row["zone"]) for row in _rows("postal_zones.csv")}


def _rows(name: str) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(files("events.parsing").joinpath(name).read_text("utf-8").splitlines())

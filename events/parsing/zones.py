"""The time zone of a place within its country: by postal code, region and city.

`zones.csv`: a row for each country (without a region), and rows by region where a country has
several zones. `split` marks rows beside other zones: `1` where the row is the likeliest of them,
`rare` where hardly a parcel goes there. `postal_zones.csv`: prefixes of postal codes that decide.
`regions.csv`: names of regions. Then the city: all cities of the name there have to agree.
"""

import csv
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from events.event import EventPlace
from events.parsing.cities import Bearer, bearers, spelled_city

_COMPARED: Final = tuple(
    datetime(2015, 1, 15, tzinfo=UTC) + timedelta(days=days) for days in range(0, 20 * 365, 91)
)
_RARE: Final = "rare"
# Release of the time zones by which local times are read, such as 2026f.
IANA_RELEASE: Final[str] = import_module("tzdata").IANA_VERSION


class LocalZone(NamedTuple):
    """A zone, and whether the place leaves no doubt about it."""

    zone: ZoneInfo
    certain: bool = True
    of_shipment: bool = False
    """True if the shipment's data decided, not the place of the scan."""


class ZoneRow(NamedTuple):
    """A row of `zones.csv`."""

    zone: ZoneInfo
    certain: bool
    is_only: bool
    """No place there has another zone, so no finer field is needed."""


def zone_of(place: EventPlace) -> LocalZone | None:
    """Return the zone of a place by the data within its country; None without a country."""
    return (
        None
        if place.country is None
        else zone_at(place.country, place.region, place.postal_code, place.city)
    )


@lru_cache(maxsize=8192)
def zone_at(
    country: str, region: str | None, postal_code: str | None, city: str | None = None
) -> LocalZone | None:
    """Return the zone like `zone_of`; `country` is ISO 3166-1 alpha-2."""
    # before the region: codes cross the borders of states where zones do
    if postal_code and (by_postal := _by_postal(country, postal_code)):
        return LocalZone(by_postal)
    code = region_code(country, region)
    row = zone_row(country, code) or zone_row(country, None)
    if row is None:
        return None
    if not row.is_only and city:
        known = bearers(city)
        by_city = agreed(
            bearer
            for bearer in known
            if bearer.country == country and bearer.region in (code, None)
        )
        if by_city is not None:
            return by_city
        if code is None and (
            elsewhere := agreed(bearer for bearer in known if bearer.country == country)
        ):
            return elsewhere
    return LocalZone(row.zone, row.certain)


def is_region(country: str, code: str) -> bool:
    """Return whether a country has a region of that code; known of countries with several zones."""
    return bool(code) and (country, code.upper()) in _rows_by_region()


def region_code(country: str, region: str | None) -> str | None:
    """Return the code of a region that is printed as such or by its name; None
    where it is not known.
    """
    if not region:
        return None
    # ISO 3166-2 prints the country in front
    code = region.upper().removeprefix(f"{country}-")
    if (country, code) in _rows_by_region():
        return code
    return _regions().get((country, spelled_city(region)))


def zone_row(country: str, region: str | None) -> ZoneRow | None:
    """Return the row of a region, or (for None) of its country."""
    return _rows_by_region().get((country, region or ""))


def agreed(of: Iterable[Bearer]) -> LocalZone | None:
    """Return the zone of all these cities; None where they differ, or where there is none."""
    found: ZoneInfo | None = None
    for bearer in of:
        row = zone_row(bearer.country, bearer.region) or zone_row(bearer.country, None)
        zone = ZoneInfo(bearer.zone) if bearer.zone else row and row.zone
        # one that is unknown, or differs, and none of them decides
        if zone is None or (found is not None and not same_time(found, zone)):
            return None
        found = zone
    return None if found is None else LocalZone(found)


@lru_cache(maxsize=1024)
def same_time(first: ZoneInfo, second: ZoneInfo) -> bool:
    """Return whether two zones have shown the same time since 2015, and will as far as is known."""
    return first is second or all(
        # by what they show, not by name: many names are links to one zone
        at.astimezone(first).utcoffset() == at.astimezone(second).utcoffset()
        for at in _COMPARED
    )


def _by_postal(country: str, postal_code: str) -> ZoneInfo | None:
    lengths, zones = _postal_zones()
    printed = postal_code.upper().removeprefix(f"{country}-").replace(" ", "")
    return next(
        (
            zone
            for length in lengths.get(country, ())
            if (zone := zones.get((country, printed[:length])))
        ),
        None,
    )


@cache
def _rows_by_region() -> dict[tuple[str, str], ZoneRow]:
    return {
        (row["country"], row["region"]): ZoneRow(
            ZoneInfo(row["zone"]), certain=row["split"] in ("", _RARE), is_only=not row["split"]
        )
        for row in rows_of("zones.csv")
    }


@cache
def _postal_zones() -> tuple[dict[str, list[int]], dict[tuple[str, str], ZoneInfo]]:
    """Return the lengths of the prefixes of each country, the longest first, and their zones."""
    zones = {
        (row["country"], row["prefix"]): ZoneInfo(row["zone"])
        for row in rows_of("postal_zones.csv")
    }
    return {
        country: sorted({len(prefix) for of, prefix in zones if of == country}, reverse=True)
        for country, _ in zones
    }, zones


@cache
def _regions() -> dict[tuple[str, str], str]:
    return {(row["country"], row["name"]): row["code"] for row in rows_of("regions.csv")}


def rows_of(name: str) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(
        files("events.parsing").joinpath(name).read_text("utf-8").splitlines()
    )

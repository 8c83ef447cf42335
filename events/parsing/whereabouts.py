"""The time zone of a scan: by its own place first, then by the message's data about its shipment.

A place decides by its country (`events.parsing.zones`), by the code of an airport where the
carrier's codes are such, or by the name of its city. A city without a country is looked for in the
carrier's own country, or without it in the countries of origin and destination, then everywhere; it
decides only where all cities of the name agree. Where the place is too vague, the shipment's origin
or destination replaces it, by the status of the scan, and the zone is marked (`of_shipment`).
"""

import re
from functools import cache, lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from events.event import NOWHERE, EventPlace
from events.parsing.cities import Bearer, bearers
from events.parsing.lines import position_in_line
from events.parsing.places import known_countries
from events.parsing.zones import (
    LocalZone,
    agreed,
    is_region,
    region_code,
    rows_of,
    same_time,
    zone_at,
    zone_of,
)
from events.vocabulary import Status

_AT_ORIGIN: Final = frozenset({Status.INFO_RECEIVED, Status.PICKED_UP, Status.RETURNED})
_AT_DESTINATION: Final = frozenset(
    {
        Status.OUT_FOR_DELIVERY,
        Status.DELIVERY_ATTEMPTED,
        Status.AVAILABLE_FOR_PICKUP,
        Status.DELIVERED,
    }
)
# Names of the facilities of the United States Postal Service: `WEST PALM BEACH FL DISTRIBUTION
# CENTER`.
_WITH_STATE: Final = re.compile(
    r"(?P<city>[A-Z .'-]+?) (?P<state>[A-Z]{2})(?: [A-Z]+)* (?:CENTER|FACILITY|ANNEX|HUB)"
    r"(?: ANNEX)?"
)
_WITH_COUNTRY: Final = re.compile(r"(?P<city>.+?)\s*\((?P<country>[A-Z]{2})\)")


class Journey(NamedTuple):
    """A shipment's route in a message, for scans with a vague place.

    `home`: IANA name of the zone of the service or carrier that a message names, in place of
    the format's `default_zone`.
    """

    origin: EventPlace = NOWHERE
    destination: EventPlace = NOWHERE
    home: str | None = None
    status: Status | None = None
    """Status of the scan: an early scan was at the origin, a late scan at the destination."""

    def at(self, status: Status | None) -> "Journey":
        return (
            self
            if status is self.status
            else Journey(self.origin, self.destination, self.home, status)
        )

    def ends(self) -> tuple[EventPlace, ...]:
        """Return origin and destination, the likelier place of the scan first; those that are
        not known are left out.
        """
        ends = (
            (self.destination, self.origin)
            if self.status in _AT_DESTINATION
            else (self.origin, self.destination)
        )
        return tuple(end for end in ends if end != NOWHERE)


NO_JOURNEY: Final = Journey()
_POSTAL_ITEM: Final = re.compile(r"[A-Z]{2}(?P<serial>\d{8})(?P<check>\d)(?P<country>[A-Z]{2})")
_WEIGHTS: Final = (8, 6, 4, 2, 3, 5, 9, 7)


def origin_of_item(number: str | None) -> EventPlace:
    """Return the country of the post that gave an item its number, which ends with it (UPU S10.

    Two letters, eight digits, a check digit).
    """
    found = _POSTAL_ITEM.fullmatch(number or "")
    if found is None or found["country"] not in known_countries():
        return NOWHERE
    rest = (
        11
        - sum(int(digit) * weight for digit, weight in zip(found["serial"], _WEIGHTS, strict=True))
        % 11
    )
    return (
        EventPlace(country=found["country"])
        if int(found["check"]) == {10: 0, 11: 5}.get(rest, rest)
        else NOWHERE
    )


@lru_cache(maxsize=8192)
def zone_of_scan(
    place: EventPlace,
    journey: Journey = NO_JOURNEY,
    *,
    country: str | None = None,
    airports: bool = False,
) -> LocalZone | None:
    """Return the zone of a scan; None where it is unknown.

    `country`: of places without a country. `airports`: the facility may be the IATA code of an
    airport or city.
    """
    place = _in_words(place)
    by_country = zone_of(place)
    if by_country is not None and by_country.certain:
        return by_country
    known = bearers(place.city) if place.city else ()
    if airports and (by_airport := _by_airport(place, known)):
        return by_airport
    if place.country is not None:
        ends = (zone_of(end) for end in journey.ends() if end.country == place.country)
        return next(
            (end._replace(of_shipment=True) for end in ends if end is not None and end.certain),
            by_country,
        )
    if country is not None:
        return agreed(bearer for bearer in known if bearer.country == country)
    return _by_city(place, known, journey) or _by_end(journey)


def load_tables() -> None:
    """Load the tables that are otherwise loaded with the first message that needs them."""
    _airports()
    bearers("-")
    zone_of(EventPlace(country="US", region="New York", postal_code="10001"))


def _in_words(place: EventPlace) -> EventPlace:
    """Return the place with the state or country that is printed in place of its city."""
    city = place.city
    if city is None or (place.country not in (None, "US")) or place.region is not None:
        return place
    if (facility := _WITH_STATE.fullmatch(city)) and is_region("US", facility["state"]):
        return EventPlace(
            city=facility["city"],
            region=facility["state"],
            postal_code=place.postal_code,
            country="US",
        )
    if place.country is not None:
        return place
    if (named := _WITH_COUNTRY.fullmatch(city)) and named["country"] in known_countries():
        return EventPlace(city=named["city"], country=named["country"], facility=place.facility)
    line = position_in_line(city)
    return (
        place
        if line.country is line.region is None
        else EventPlace(**_parts(line), facility=place.facility)
    )


def _parts(line: EventPlace) -> dict[str, str | None]:
    return {
        "city": line.city,
        "region": line.region,
        "postal_code": line.postal_code,
        "country": line.country,
    }


def _by_airport(place: EventPlace, known: tuple[Bearer, ...]) -> LocalZone | None:
    """Return the zone by the code of an airport in the country of the place.

    Without a country, in a country that has a city of the printed name.
    """
    found = _airports().get(place.facility or "")
    if found is None:
        return None
    country, zone = found[0], ZoneInfo(found[1])
    countries = {place.country} if place.country else {bearer.country for bearer in known}
    is_bare = place.country is None and place.city in (None, place.facility)
    return LocalZone(zone) if is_bare or country in countries else None


def _by_city(place: EventPlace, known: tuple[Bearer, ...], journey: Journey) -> LocalZone | None:
    countries = {end.country for end in journey.ends()}
    if place.region is not None:
        codes = ((bearer, region_code(bearer.country, place.region)) for bearer in known)
        if found := agreed(
            bearer._replace(region=code)
            for bearer, code in codes
            if code is not None and bearer.region in (None, code)
        ):
            return found
        if not known and (
            states_of := [country for country in ("US", "CA") if is_region(country, place.region)]
        ):
            return zone_at(states_of[0], place.region, place.postal_code, place.city)
    on_the_way = [bearer for bearer in known if bearer.country in countries]
    return agreed(on_the_way) or (None if on_the_way else agreed(known))


def _by_end(journey: Journey) -> LocalZone | None:
    found = [zone for end in journey.ends() if (zone := zone_of(end)) is not None]
    if not found:
        return None
    decided = journey.status in _AT_ORIGIN or journey.status in _AT_DESTINATION
    agree = decided or all(same_time(found[0].zone, other.zone) for other in found[1:])
    return found[0]._replace(of_shipment=True, certain=found[0].certain and agree)


@cache
def _airports() -> dict[str, tuple[str, str]]:
    return {row["code"]: (row["country"], row["zone"]) for row in rows_of("airports.csv")}


@lru_cache(maxsize=1024)
def home_of(name: str | None) -> str | None:
    """Return the zone (IANA name) of a carrier that an aggregator names, for scans without a place;
    None for an unknown carrier.

    `couriers.csv` is maintained by hand: the zone of the carrier's country, or of its head office
    if it works in several zones. Only letters and digits of the name count.
    """
    courier = _courier(name)
    return None if courier is None else courier["zone"]


def carrier_of(name: str | None) -> str | None:
    """Return the `carrier_id` of a carrier that an aggregator names.

    None for an unknown or ambiguous name.
    """
    courier = _courier(name)
    return None if courier is None else courier["carrier_id"] or None


def _courier(name: str | None) -> dict[str, str] | None:
    return _couriers().get(
        "".join(character for character in (name or "").casefold() if character.isalnum())
    )


@cache
def _couriers() -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in rows_of("couriers.csv")}

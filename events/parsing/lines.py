"""Places printed as a line of text ("Los Angeles, CA, US"), split only where unambiguous.

Two letters at the end may name a state or a country (CA, DE, IL); the carrier's module decides
between them. An aggregator repeats the texts of hundreds of carriers, so all aggregators share a
reader (`reported_place`).
"""

import re
from functools import lru_cache
from typing import Final, Literal

from events.event import NOWHERE, EventPlace
from events.parsing.cities import bearers
from events.parsing.places import country_code, known_countries, place
from events.parsing.text import text_unless
from events.parsing.zones import is_region

_STATE_AND_ZIP: Final = re.compile(r"(?P<state>[A-Z]{2})\s+(?P<zip>\d{5}(?:-\d{4})?)")
_BY_HABIT: Final = {"UK": "GB"}
_WITH_STATES: Final = ("US", "CA")
_NULLS: Final = frozenset({"null", "none", "undefined", "n/a"})
_AREA_AROUND: Final = re.compile(r"\s*&\s*SURROUND\w+ AREAS?\Z", re.IGNORECASE)
_POSTAL_CODE: Final = re.compile(r"(?=[A-Z -]*\d)[A-Z0-9]{2,5}(?:[ -]?[A-Z0-9]{2,4})?")
_WITH_ZIP: Final = re.compile(r"(?P<city>[^,]+),? (?P<state>[A-Z]{2}),? (?P<zip>\d{5}(?:-\d{4})?)")
_WITHOUT_COMMA: Final = re.compile(r"(?P<city>[A-Za-z .'-]+) (?P<state>[A-Z]{2})")


@lru_cache(maxsize=4096)
def position_in_line(
    line: str | None,
    *,
    two_letters: Literal["country", "state"] | None = None,
    country: str | None = None,
) -> EventPlace:
    """Read city, region, postal code and country of a comma-separated line.

    A line of another form is the city. `two_letters`: the meaning of two letters after the city
    alone that name a country as well as a state of the United States or Canada; None leaves
    them a region of no country. `country` applies where the line names none, and so do its
    states.
    """
    parts = [part.strip() for part in (line or "").split(",") if part.strip()]
    if not parts:
        return NOWHERE if country is None else EventPlace(country=country)
    last, before = parts[-1], ", ".join(parts[:-1])
    named = _country(last)
    if not before:
        return EventPlace(country=named) if named else EventPlace(city=last, country=country)
    if zipped := _STATE_AND_ZIP.fullmatch(last):
        return EventPlace(
            city=before, region=zipped["state"], postal_code=zipped["zip"], country="US"
        )
    states_of = [code for code in _WITH_STATES if len(last) == 2 and is_region(code, last)]
    is_state = bool(states_of) and (
        country in states_of or (len(parts) == 2 and two_letters != "country")
    )
    if named is None or is_state:
        in_states = named is None or two_letters == "state"
        return EventPlace(
            city=before,
            region=last,
            country=country or (states_of[0] if states_of and in_states else None),
        )
    return EventPlace(city=parts[0], region=", ".join(parts[1:-1]) or None, country=named)


@lru_cache(maxsize=4096)
def _country(printed: str) -> str | None:
    """Return the country that a code in capitals or an English name means; None for another
    word.
    """
    if printed in _BY_HABIT:
        return _BY_HABIT[printed]
    code = country_code(printed)
    if code not in known_countries() or (len(printed) <= 3 and not printed.isupper()):
        return None
    return code


def reported_place(
    line: str | None = None,
    *,
    city: object = None,
    region: object = None,
    postal_code: object = None,
    country: object = None,
    of_shipment: tuple[str | None, ...] = (),
) -> EventPlace:
    """Read a place as an aggregator repeats it: in fields of its own, in a line of text, or both.

    The fields go before the line; a city without region and postal code is itself such a line.
    "City, ST" is a state before it is a country, unless only a country of that code has a city
    of the name, or the shipment's countries of origin and destination (`of_shipment`) decide.
    """
    own = place(
        city=_said(city),
        region=_said(region),
        postal_code=_said(postal_code),
        country=_said(country),
    )
    printed = _said(line)
    if own.city is not None and own.region is None and own.postal_code is None:
        printed = own.city
        own = own._replace(city=None)
    if printed is None:
        return own
    at = _in_report(printed, own.country, tuple(code for code in of_shipment if code))
    return place(
        city=own.city or at.city,
        region=own.region or at.region,
        postal_code=own.postal_code or at.postal_code,
        country=own.country or at.country,
    )


def _said(value: object) -> str | None:
    return text_unless(value, _NULLS)


@lru_cache(maxsize=8192)
def _in_report(line: str, country: str | None, of_shipment: tuple[str, ...]) -> EventPlace:
    before, dash, last = line.rpartition(" - ")
    if dash and (named := _named_country(last)):
        return _in_report(before, country or named, of_shipment)
    line = _AREA_AROUND.sub("", line)
    parts = [part.strip() for part in line.split(",") if part.strip()]
    named, postal_code, popped = country, None, None
    while parts and (found := _country_at_end(parts, named)):
        named, popped = named or found, parts.pop()
    if (
        not parts
        and popped is not None
        and any(bearer.country == named for bearer in bearers(popped))
    ):
        return EventPlace(city=popped, country=named)
    if len(parts) > 1 and _POSTAL_CODE.fullmatch(parts[-1]):
        postal_code = parts.pop()
    at = _city_and_state(parts, named, of_shipment)
    return at._replace(postal_code=at.postal_code or postal_code, country=named or at.country)


def _country_at_end(parts: list[str], known: str | None) -> str | None:
    """Return the country that the last part names: by its name, by its code behind a state, or by
    the code of the country that is known.
    """
    found = _named_country(parts[-1]) or (
        _country(parts[-1]) if len(parts[-1]) == 2 and (len(parts) > 2 or known) else None
    )
    return found if known is None or found == known else None


def _city_and_state(
    parts: list[str], country: str | None, of_shipment: tuple[str, ...]
) -> EventPlace:
    """Read the rest of a line without country and postal code."""
    if not parts:
        return NOWHERE
    if (
        country in (None, "US")
        and (zipped := _WITH_ZIP.fullmatch(", ".join(parts)))
        and is_region("US", zipped["state"])
    ):
        return EventPlace(
            city=zipped["city"], region=zipped["state"], postal_code=zipped["zip"], country="US"
        )
    if len(parts) == 1:
        worded = _WITHOUT_COMMA.fullmatch(parts[0])
        if worded and country in (None, "US") and _has_city("US", worded["state"], worded["city"]):
            return EventPlace(city=worded["city"], region=worded["state"], country="US")
        alone = _country(parts[0]) if country is None else None
        return EventPlace(country=alone) if alone else EventPlace(city=parts[0])
    city, last = parts[0], parts[-1]
    if len(parts) > 2 or country is not None:
        return EventPlace(city=city, region=", ".join(parts[1:]))
    return _two_parts(city, last, of_shipment)


def _two_parts(city: str, last: str, of_shipment: tuple[str, ...]) -> EventPlace:
    """Read `City, XX`: where the city is known decides, then the shipment, then a state of the
    United States or Canada goes first.
    """
    named = _country(last)
    states_of = [
        code for code in dict.fromkeys((*of_shipment, *_WITH_STATES)) if is_region(code, last)
    ]
    known = [
        code
        for code in dict.fromkeys((*states_of, *(bearer.country for bearer in bearers(city))))
        if _has_city(code, last, city)
    ]
    is_there = named is not None and any(bearer.country == named for bearer in bearers(city))
    if known and is_there:
        known = [code for code in known if code in of_shipment] or (
            [] if named in of_shipment else known
        )
    if known:
        return EventPlace(city=city, region=last, country=known[0])
    of_state = next((code for code in states_of if code in of_shipment), None)
    if named is not None and (
        is_there or not states_of or (named in of_shipment and of_state is None)
    ):
        return EventPlace(city=city, country=named)
    return EventPlace(
        city=city, region=last, country=of_state or (states_of[0] if states_of else None)
    )


def _has_city(country: str, state: str, city: str) -> bool:
    return is_region(country, state) and any(
        bearer.country == country and bearer.region in (None, state) for bearer in bearers(city)
    )


@lru_cache(maxsize=4096)
def _named_country(printed: str) -> str | None:
    """Return the country that a name or a code of three capitals means."""
    return _country(printed.title() if len(printed) > 3 else printed) if len(printed) > 2 else None

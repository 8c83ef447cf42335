"""Places that are printed as one line of text ("Los Angeles, CA, US"), taken apart only as far as the line leaves no doubt.

Two letters at the end may name a state or a country (CA, DE, IN); which of both a carrier means is for its module to say.
"""

import re
from functools import lru_cache
from typing import Final

from events.event import NOWHERE, Place
from events.reading.places import country_code, known_countries
from events.reading.zones import zone_at

_STATE_AND_ZIP: Final = re.compile(r"(?P<state>[A-Z]{2})\s+(?P<zip>\d{5}(?:-\d{4})?)")
_BY_HABIT: Final = {"UK": "GB"}
_WITH_STATES: Final = ("US", "CA")


@lru_cache(maxsize=4096)
def place_in_line(line: str | None, *, states_first: bool = False, country: str | None = None) -> Place:
    """City, region, postal code and country of a line with commas between them; a line of another form is the city.

    `states_first`: two letters that name both a country and a state of the United States or Canada mean the state, where only the
    city stands before them. `country` holds where the line names none, and then the last two letters are a state of it.
    """
    parts = [part.strip() for part in (line or "").split(",") if part.strip()]
    if not parts:
        return NOWHERE if country is None else Place(country=country)
    last = parts[-1]
    if (zipped := _STATE_AND_ZIP.fullmatch(last)) and len(parts) > 1:
        return Place(city=", ".join(parts[:-1]), region=zipped["state"], postal_code=zipped["zip"], country="US")
    named = _country(last)
    if len(parts) == 1:
        return Place(country=named) if named else Place(city=last, country=country)
    state_of = next((code for code in _WITH_STATES if len(last) == 2 and zone_at(code, last, None)), None)
    if country in _WITH_STATES and len(last) == 2 and zone_at(country, last, None) is not None:
        return Place(city=", ".join(parts[:-1]), region=last, country=country)
    if named is None or (states_first and state_of and len(parts) == 2):
        return Place(city=", ".join(parts[:-1]), region=last, country=country or state_of)
    return Place(city=parts[0], region=", ".join(parts[1:-1]) or None, country=named)


@lru_cache(maxsize=4096)
def _country(printed: str) -> str | None:
    """The country that a code in capitals or an English name means; None for another word."""
    if printed in _BY_HABIT:
        return _BY_HABIT[printed]
    code = country_code(printed)
    if code not in known_countries() or (len(printed) <= 3 and not printed.isupper()):
        return None
    return code

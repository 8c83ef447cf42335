"""Places that are printed as one line of text ("Los Angeles, CA, US"), split only as far as the line leaves no doubt.

Two letters at the end may name a state or a country (CA, DE, IL); which of both a carrier means is for its module to say.
"""

import re
from functools import lru_cache
from typing import Final, Literal

from events.event import NOWHERE, EventPlace
from events.parsing.places import country_code, known_countries
from events.parsing.zones import is_region

_STATE_AND_ZIP: Final = re.compile(r"(?P<state>[A-Z]{2})\s+(?P<zip>\d{5}(?:-\d{4})?)")
_BY_HABIT: Final = {"UK": "GB"}
_WITH_STATES: Final = ("US", "CA")


@lru_cache(maxsize=4096)
def place_in_line(line: str | None, *, two_letters: Literal["country", "state"] | None = None, country: str | None = None) -> EventPlace:
    """City, region, postal code and country of a line with commas between them; a line of another form is the city.

    `two_letters`: what those mean that stand behind the city alone and name a country as well as a state of the United States or
    Canada; None leaves them a region of no country. `country` holds where the line names none, and its states are states.
    """
    parts = [part.strip() for part in (line or "").split(",") if part.strip()]
    if not parts:
        return NOWHERE if country is None else EventPlace(country=country)
    last, before = parts[-1], ", ".join(parts[:-1])
    named = _country(last)
    if not before:
        return EventPlace(country=named) if named else EventPlace(city=last, country=country)
    if zipped := _STATE_AND_ZIP.fullmatch(last):
        return EventPlace(city=before, region=zipped["state"], postal_code=zipped["zip"], country="US")
    states_of = [code for code in _WITH_STATES if len(last) == 2 and is_region(code, last)]
    is_state = bool(states_of) and (country in states_of or (len(parts) == 2 and two_letters != "country"))
    if named is None or is_state:
        in_states = named is None or two_letters == "state"
        return EventPlace(city=before, region=last, country=country or (states_of[0] if states_of and in_states else None))
    return EventPlace(city=parts[0], region=", ".join(parts[1:-1]) or None, country=named)


@lru_cache(maxsize=4096)
def _country(printed: str) -> str | None:
    """The country that a code in capitals or an English name means; None for another word."""
    if printed in _BY_HABIT:
        return _BY_HABIT[printed]
    code = country_code(printed)
    if code not in known_countries() or (len(printed) <= 3 and not printed.isupper()):
        return None
    return code

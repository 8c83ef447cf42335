"""Countries, regions and zones that have a city of a given name.

`cities.csv` (written by `tests/place_tables.py` from GeoNames, CC BY 4.0) is searched as
it lies in memory, two megabytes of lines in the order of their bytes: as a dictionary it
would take ten times that.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

_LATIN: Final = str.maketrans(
    {
        "ß": "ss",
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
        "đ": "d",
        "Đ": "D",
        "æ": "ae",
        "Æ": "AE",
        "œ": "oe",
        "Œ": "OE",
        "ı": "i",
        "ð": "d",
    }
)
_FOREIGN: Final = re.compile("[^\x00-\u024f\u0300-\u036f\u1e00-\u1eff\u2010-\u2027\\s]")
# Marks of Arabic that are printed or not: they change no name.
_UNSPOKEN: Final = re.compile("[\u0640\u064b-\u0652]")
_WORD: Final = re.compile("[a-z0-9]+")
_UMLAUT: Final = re.compile("([aou])e")
# Words that carriers print behind the name of a city where a facility of theirs is.
_NOT_OF_THE_NAME: Final = frozenset(
    {
        "airport",
        "annex",
        "apex",
        "branch",
        "center",
        "centre",
        "city",
        "ddc",
        "delivery",
        "depot",
        "distribution",
        "facility",
        "gateway",
        "hub",
        "international",
        "logistics",
        "mail",
        "network",
        "office",
        "parcel",
        "plant",
        "processing",
        "regional",
        "service",
        "sort",
        "sorting",
        "station",
        "terminal",
        "warehouse",
    }
)


class Bearer(NamedTuple):
    """Cities of one name in a country, or in a region of it.

    `zone` None: that of the country or region.
    """

    country: str
    region: str | None
    zone: str | None


@lru_cache(maxsize=8192)
def bearers(printed: str) -> tuple[Bearer, ...]:
    """Return the cities that a printed name may mean; empty if none is known.

    A facility or region in the name is ignored.
    """
    words = spelled_city(printed.partition(",")[0]).split()
    while words:
        name = " ".join(words)
        found = _search(name) or _search(_UMLAUT.sub(r"\1", name))
        if found or words[-1] not in _NOT_OF_THE_NAME:
            return found
        words.pop()
    return ()


def spelled_city(name: str) -> str:
    """Return a name as the table has it: in lower case, Latin without accents, another
    script as it is printed.
    """
    if not name.isascii():
        name = name.translate(_LATIN)
        if _FOREIGN.search(name):
            name = _UNSPOKEN.sub("", unicodedata.normalize("NFKC", name))
            return " ".join(name.casefold().split())
        name = unicodedata.normalize("NFKD", name)
        name = "".join(character for character in name if not unicodedata.combining(character))
    return " ".join(_WORD.findall(name.casefold()))


def _search(name: str) -> tuple[Bearer, ...]:
    """Return the bearers of the line that begins with `name,`."""
    table, key = _table(), f"{name},".encode()
    low, high = 0, len(table)
    while low < high:
        start = table.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = table.find(b"\n", start)
        line = table[start:end]
        if line.startswith(key):
            return tuple(_bearers(line[len(key) :].decode().split()))
        if line < key:
            low = end + 1
        else:
            high = start
    return ()


def _bearers(printed: Iterable[str]) -> Iterable[Bearer]:
    for one in printed:
        where, _, zone = one.partition("=")
        country, _, region = where.partition("-")
        yield Bearer(country, region or None, zone or None)


@cache
def _table() -> bytes:
    return files("events.parsing").joinpath("cities.csv").read_bytes()

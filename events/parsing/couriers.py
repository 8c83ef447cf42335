"""The home of a carrier that an aggregator names: the zone of its scans where nothing says where they were.

`couriers.csv` is maintained by hand: the zone of the carrier's country, or of its head office where it works in several zones.
"""

from functools import cache, lru_cache

from events.parsing.zones import rows_of


@lru_cache(maxsize=1024)
def home_of(name: str | None) -> str | None:
    """IANA name of a zone; None for a carrier that is not known. Only letters and digits of its name count."""
    return _homes().get("".join(character for character in (name or "").casefold() if character.isalnum()))


@cache
def _homes() -> dict[str, str]:
    return {row["name"]: row["zone"] for row in rows_of("couriers.csv")}

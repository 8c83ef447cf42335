"""What a carrier's retraction can mean where it names no event.

Carriers say "the previous event was deleted". Some codes narrow that to one family of scans; any other takes back the latest
scan before it, whatever that is.
"""

from collections.abc import Mapping
from typing import Final

from projections.fact import Fact

_ARRIVALS: Final = frozenset({"AR"})
_DEPARTURES: Final = frozenset({"DP"})
_UNLOADS: Final = frozenset({"UL"})
_PICKUPS: Final = frozenset({"PU", "PC", "PT", "OR", "XD"})

FAMILIES: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    ("ups", "CA"): _ARRIVALS,
    ("ups", "UA"): _ARRIVALS,
    ("ups", "CD"): _DEPARTURES,
    ("ups", "UD"): _DEPARTURES,
    ("ups", "CL"): _UNLOADS,
    ("ups", "VP"): _PICKUPS,
}
"""(carrier_id, code of the retraction) -> codes of the scans that it can mean."""


def can_mean(retraction: Fact, scan: Fact) -> bool:
    """Whether `retraction` can be about `scan`, which is a scan before it that still stands."""
    family = FAMILIES.get((retraction.carrier_id, retraction.raw_code or ""))
    return family is None or scan.raw_code in family

"""The shipments in slices of their key space: ids are hashes, so equal slices hold
about equally many. Pure.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

_KEYS: Final = 2**128
# Approximate size of an event on disk.
EVENT_BYTES: Final = 1500
# Events of a slice, which a process holds in memory at once: about 10 MB.
SLICE_EVENTS: Final = 8_000
SLICES_MAX: Final = 65_536


@dataclass(frozen=True, slots=True)
class Slice:
    """All shipments from `first` to `last`, both included."""

    first: UUID
    last: UUID


def slices(log_bytes: int) -> list[Slice]:
    """Divide the whole key space into as many slices as a log of that size is worth."""
    count = min(SLICES_MAX, max(1, log_bytes // (EVENT_BYTES * SLICE_EVENTS)))
    return [slice_at(place, count) for place in range(count)]


def slice_at(place: int, count: int) -> Slice:
    """Return the slice of the ids for which `place_of` returns this place."""
    # rounded up: the first id at or after the bound
    first, after = (-(-_KEYS * bound // count) for bound in (place, place + 1))
    return Slice(UUID(int=first), UUID(int=after - 1))


def place_of(shipment: UUID, count: int) -> int:
    return shipment.int * count // _KEYS

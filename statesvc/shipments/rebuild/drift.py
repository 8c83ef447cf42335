"""Differences between the live projection and the log. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import orjson

from projections.row import ShipmentRow
from projections.state import ShipmentState
from statesvc.shipments.local_time import local_times

# The live table has no row for events that are there.
MISSING: Final = "missing"
# The live table has a row without any event.
UNFOUNDED: Final = "unfounded"


@dataclass(frozen=True, slots=True)
class Drift:
    """A shipment that reads differently. `fields`: columns, or one of the words above."""

    shipment_id: UUID
    carrier_id: str
    fields: tuple[str, ...]


def drifts(live: Mapping[UUID, ShipmentRow], rebuilt: Iterable[ShipmentRow]) -> Iterator[Drift]:
    founded = set()
    for row in rebuilt:
        founded.add(row.shipment_id)
        found = live.get(row.shipment_id)
        fields = (MISSING,) if found is None else _differing(found, row)
        if fields:
            yield Drift(row.shipment_id, row.carrier_id, fields)
    # what is left has no event: a row that the log does not know
    for shipment_id, row in live.items():
        if shipment_id not in founded:
            yield Drift(shipment_id, row.carrier_id, (UNFOUNDED,))


def _differing(live: ShipmentRow, rebuilt: ShipmentRow) -> tuple[str, ...]:
    if live == rebuilt:
        return ()
    # of the accumulator its meaning counts: an older program may have written it in another form
    alike = (
        {"state"}
        if ShipmentState.from_json(live.state) == ShipmentState.from_json(rebuilt.state)
        else set()
    )
    # when it is looked at again depends on the rules and on the watcher, which may put it off
    alike.add("due_at")
    moved = {
        name
        for name, mine, theirs in zip(live._fields, live, rebuilt, strict=True)
        if mine != theirs
    } - alike
    return tuple(
        name for name in live._fields if name in moved | _other_offsets(live.state, rebuilt.state)
    )


def _other_offsets(mine: bytes, theirs: bytes) -> set[str]:
    """Return the times that read differently on the wall clock; equal instants compare as equal."""
    ours, rebuilt = local_times(orjson.loads(mine)), local_times(orjson.loads(theirs))
    return {
        name
        for name in ours.keys() & rebuilt.keys()
        if ours[name].isoformat() != rebuilt[name].isoformat()
    }

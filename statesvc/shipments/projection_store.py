"""Reading and writing of the shipment projection, a statement each for any number of shipments."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final
from uuid import UUID

from events.entry.assemble import StreamHead
from projections.project import Projected
from projections.row import ShipmentRow, shipment_row
from projections.state import ShipmentState
from statesvc.database.queries import (
    Array,
    Columns,
    Pending,
    Sender,
    bools,
    byteas,
    encoded,
    ints,
    queries,
    send,
    texts,
    timestamps,
    uuids,
)
from statesvc.log.json_compression import compress_json, decompress_json
from statesvc.shipments.expectation_rules import RuleBook

SQL = queries("statesvc.shipments", "projection_store")


def _joined(members: Sequence[Sequence[str]]) -> Array:
    """Join arrays to texts: psycopg cannot send an array of arrays of different lengths."""
    return texts([",".join(flags) for flags in members])


def _compressed(states: Sequence[bytes]) -> Array:
    return byteas([compress_json(state) for state in states])


SHIPMENT_COLUMNS: Final[Columns] = {
    "shipment_ids": uuids,
    "versions": ints,
    "recorded_ats": timestamps,
    "first_recorded_ats": timestamps,
    "last_event_ats": timestamps,
    "status_sinces": timestamps,
    "delivered_ats": timestamps,
    "attempts": ints,
    "terminals": bools,
    "carrier_ids": texts,
    "numbers": texts,
    "tracking_numbers": texts,
    "discriminators": texts,
    "statuses": texts,
    "reasons": texts,
    "flags": _joined,
    "estimated_deliveries": texts,
    "signed_by_event_ids": texts,
    "promised_untils": timestamps,
    "lanes": texts,
    "services": texts,
    "due_ats": timestamps,
    "states": _compressed,
}
_BY_INT: Final = attrgetter("int")


async def read_states(
    connection: Sender, shipment_ids: Iterable[UUID]
) -> Pending[dict[UUID, ShipmentState]]:
    """Read the states of those shipments that exist, after their streams are locked."""
    return await send(
        connection,
        SQL["read_states"],
        {"shipment_ids": uuids(list(shipment_ids))},
        lambda rows: {
            shipment_id: ShipmentState.from_json(decompress_json(state))
            for shipment_id, state in rows
        },
    )


async def save_shipments(
    connection: Sender,
    shipments: Mapping[UUID, Projected],
    heads: Mapping[UUID, StreamHead],
    rules: RuleBook,
) -> None:
    """Write the states of locked shipments, and when they are looked at again because
    something is expected of them.
    """
    rows = [
        _row(shipment_id, shipments[shipment_id], heads[shipment_id].first_recorded_at, rules)
        # rows of a table are locked by key; as ints, which PostgreSQL orders alike
        for shipment_id in sorted(shipments, key=_BY_INT)
    ]
    await connection.execute(SQL["save_shipments"], encoded(rows, SHIPMENT_COLUMNS))


def _row(
    shipment_id: UUID, projected: Projected, first_recorded_at: datetime, rules: RuleBook
) -> ShipmentRow:
    last = projected.last
    event = last.proposal.event
    return shipment_row(
        projected.state,
        shipment_id=shipment_id,
        version=last.version,
        recorded_at=last.recorded_at,
        first_recorded_at=first_recorded_at,
        occurred_at=event.occurred_at,
        carrier_id=event.carrier_id,
        number=event.numbered.number,
        tracking_number=event.tracking_number,
        discriminator=event.discriminator,
        rules=rules.of(event.carrier_id, projected.state.service),
    )

"""Reading and writing the shipment projection: one statement each, whatever the number of shipments."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from events.sql.pending import Pending, columns, send
from events.sql.queries import queries
from projections.project import Projected
from projections.state import ShipmentState

_SQL = queries("projections", "shipment")
_COLUMNS = (
    "shipment_ids",
    "versions",
    "recorded_ats",
    "first_recorded_ats",
    "last_event_ats",
    "status_sinces",
    "delivered_ats",
    "attempts",
    "terminals",
    "carrier_ids",
    "numbers",
    "tracking_numbers",
    "discriminators",
    "statuses",
    "reasons",
    "flags",
    "estimated_deliveries",
    "signed_by_event_ids",
    "states",
)


async def read_states(connection: AsyncConnection[Any], shipment_ids: Iterable[UUID]) -> Pending[dict[UUID, ShipmentState]]:
    """The states of those shipments that exist. Read after their streams are locked."""
    return await send(
        connection,
        _SQL["read_states"],
        {"shipment_ids": sorted(shipment_ids)},
        lambda rows: {shipment_id: ShipmentState.from_json(state) for shipment_id, state in rows},
    )


async def save_shipments(
    connection: AsyncConnection[Any], shipments: Mapping[UUID, Projected], first_recorded_ats: Mapping[UUID, datetime]
) -> None:
    """Writes the states of locked shipments."""
    rows = [_columns(shipment_id, shipments[shipment_id], first_recorded_ats[shipment_id]) for shipment_id in sorted(shipments)]
    await connection.execute(_SQL["save_shipments"], columns(rows, _COLUMNS))


def _columns(shipment_id: UUID, projected: Projected, first_recorded_at: datetime) -> tuple[Any, ...]:
    last, state = projected.last, projected.state
    event = last.proposal.event
    return (
        shipment_id,
        last.version,
        last.recorded_at,
        first_recorded_at,
        state.last_event_at or event.occurred_at,
        state.status_since,
        state.delivered_at,
        state.attempts,
        state.terminal,
        event.carrier_id,
        last.proposal.number,
        event.tracking_number,
        event.discriminator,
        state.status.value,
        state.reason.value if state.reason else None,
        ",".join(sorted(state.flags)),
        state.estimated_delivery,
        state.signed_by_event_id,
        state.to_json(),
    )

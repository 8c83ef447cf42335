"""A shipment's row: what the log means now, in the order of the table's columns."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from events.spelling import normalize_number
from projections.fact import decode_event, fact_from_log
from projections.fold import fold
from projections.state import ShipmentState


class ShipmentRow(NamedTuple):
    """One row of `statesvc.shipment`. `flags` sorted; `state` is the fold's whole accumulator."""

    shipment_id: UUID
    version: int
    recorded_at: datetime
    first_recorded_at: datetime
    last_event_at: datetime
    status_since: datetime | None
    delivered_at: datetime | None
    attempts: int
    terminal: bool
    carrier_id: str
    number: str
    tracking_number: str
    discriminator: str
    status: str
    reason: str | None
    flags: list[str]
    estimated_delivery: str | None
    signed_by_event_id: str | None
    state: bytes


def shipment_row(
    state: ShipmentState,
    *,
    shipment_id: UUID,
    version: int,
    recorded_at: datetime,
    first_recorded_at: datetime,
    occurred_at: datetime,
    carrier_id: str,
    number: str,
    tracking_number: str,
    discriminator: str,
) -> ShipmentRow:
    """The row of `state` after the event with the highest version, which names the times and words given."""
    return ShipmentRow(
        shipment_id,
        version,
        recorded_at,
        first_recorded_at,
        state.last_event_at or occurred_at,
        state.status_since,
        state.delivered_at,
        state.attempts,
        state.terminal,
        carrier_id,
        number,
        tracking_number,
        discriminator,
        state.status.value,
        state.reason.value if state.reason else None,
        sorted(state.flags),
        state.estimated_delivery,
        state.signed_by_event_id,
        state.to_json(),
    )


def rebuilt_row(shipment_id: UUID, history: Sequence[bytes]) -> ShipmentRow:
    """The row that all events of a shipment add up to; `history` holds their canonical bytes, oldest first, at least one."""
    events = [decode_event(canonical) for canonical in history]
    first, last = events[0], events[-1]
    return shipment_row(
        fold([fact_from_log(event) for event in events]),
        shipment_id=shipment_id,
        version=last.version,
        recorded_at=datetime.fromisoformat(last.recorded_at),
        first_recorded_at=datetime.fromisoformat(first.recorded_at),
        occurred_at=datetime.fromisoformat(last.occurred_at),
        carrier_id=last.carrier_id,
        number=normalize_number(last.tracking_number),
        tracking_number=last.tracking_number,
        discriminator=last.discriminator,
    )

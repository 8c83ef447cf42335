"""Notifications of what changed, written in the transaction that changed it.

The database keeps a notification unique per (subscription, shipment, sequence) for ever, so writing the same change twice
notifies nobody twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from psycopg import AsyncConnection

from projections.project import Change
from statesvc.database.pending import Pending, columns, send
from statesvc.database.queries import queries

_SQL = queries("statesvc.append", "outbox")
_COLUMNS = (
    *("shipment_ids", "sequences", "types", "carrier_ids", "tracking_numbers", "from_statuses", "to_statuses"),
    *("occurred_ats", "occurred_offsets", "leaf_hashes"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxChange:
    """One thing to notify of. `type`: `shipment.status_changed`, or `shipment.updated` where the status stayed."""

    shipment_id: UUID
    sequence: int
    type: str
    carrier_id: str
    tracking_number: str = field(repr=False)
    from_status: str
    to_status: str
    occurred_at: datetime
    """With the offset in which the carrier stated it."""
    leaf_hash: bytes
    """Of the event that it names, the one with the version `sequence`."""

    @classmethod
    def of(cls, change: Change) -> Self:
        """As the projection found it."""
        event = change.row.proposal.event
        return cls(
            shipment_id=change.shipment_id,
            sequence=change.row.version,
            type="shipment.status_changed" if change.is_transition else "shipment.updated",
            carrier_id=event.carrier_id,
            tracking_number=event.tracking_number,
            from_status=change.from_status,
            to_status=change.to_status,
            occurred_at=event.occurred_at,
            leaf_hash=change.row.leaf.leaf_hash,
        )


async def write_notifications(connection: AsyncConnection[Any], changes: Sequence[OutboxChange]) -> Pending[int]:
    """Puts one notification into the outbox for each live subscription that matches. Answers how many.

    One statement, inside the caller's transaction; in a pipeline it does not wait. The caller wakes `OUTBOX` after its commit.
    """
    rows = [
        (
            *(c.shipment_id, c.sequence, c.type, c.carrier_id, c.tracking_number, c.from_status, c.to_status),
            *(c.occurred_at, _offset_seconds(c.occurred_at), c.leaf_hash),
        )
        for c in changes
    ]
    return await send(connection, _SQL["write_notifications"], columns(rows, _COLUMNS), lambda found: int(found[0][0]))


def _offset_seconds(instant: datetime) -> int:
    offset = instant.utcoffset()
    return 0 if offset is None else round(offset.total_seconds())

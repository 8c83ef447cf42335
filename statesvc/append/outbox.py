"""What there is to tell, written in the transaction that appended it.

The database keeps a notification unique per (subscription, shipment, sequence) for ever, so writing the same change twice
tells nobody twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from statesvc.database.pending import Pending, columns, send
from statesvc.database.queries import queries

_SQL = queries("statesvc.append", "outbox")
_COLUMNS = ("shipment_ids", "sequences", "types", "carrier_ids", "tracking_numbers", "from_statuses", "to_statuses", "occurred_ats")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing to tell. `type`: `shipment.status_changed`, or `shipment.updated` where the status stayed."""

    shipment_id: UUID
    sequence: int
    type: str
    carrier_id: str
    tracking_number: str = field(repr=False)
    from_status: str
    to_status: str
    occurred_at: datetime


async def write_notifications(connection: AsyncConnection[Any], changes: Sequence[Change]) -> Pending[int]:
    """Puts one notification into the outbox for each live subscription that matches. Answers how many.

    One statement, inside the caller's transaction; in a pipeline it does not wait. The caller wakes `OUTBOX` after its commit.
    """
    rows = [
        (c.shipment_id, c.sequence, c.type, c.carrier_id, c.tracking_number, c.from_status, c.to_status, c.occurred_at) for c in changes
    ]
    return await send(connection, _SQL["write_notifications"], columns(rows, _COLUMNS), lambda found: int(found[0][0]))

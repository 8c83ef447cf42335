"""Shipments as we knew them: folded from the events that were sealed by then."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from projections.row import ShipmentRow, rebuilt_row
from statesvc.database.queries import queries
from statesvc.shipments.find import OTHERS_MAX, Found, OtherDiscriminators, Shipment
from statesvc.shipments.horizon import Horizon

_SQL = queries("statesvc.shipments", "horizon")
_SHIPMENT: Final = itemgetter(0)
_NOT_SHOWN: Final = {"number", "state"}
_SHOWN: Final = [name for name in ShipmentRow._fields if name not in _NOT_SHOWN]


async def find_shipment_at(
    connection: AsyncConnection[Any],
    horizon: Horizon,
    *,
    carrier_id: str,
    number: str,
    discriminator: str | None = None,
    shipment_id: UUID | None = None,
) -> Found | OtherDiscriminators | None:
    """As `find_shipment`, by what was sealed by then. What opens personal parts is today's: an erasure reaches back."""
    cursor = await connection.execute(
        _SQL["sealed_events_of_number"], {"carrier_id": carrier_id, "number": number, "size": horizon.size}, binary=True
    )
    known = [_shipment(each, list(rows)) for each, rows in groupby(await cursor.fetchall(), key=_SHIPMENT)]
    if not known:
        return None
    known.sort(key=lambda one: (-one.last_event_at.timestamp(), -one.first_recorded_at.timestamp(), one.shipment_id))
    known.sort(key=lambda one: (one.shipment_id != shipment_id, one.discriminator != discriminator))
    if discriminator is not None and known[0].discriminator != discriminator:
        return OtherDiscriminators(len(known))
    return Found(known[0], known[1 : OTHERS_MAX + 1])


def _shipment(shipment_id: UUID, rows: Sequence[tuple[UUID, bytes, bytes | None]]) -> Shipment:
    row = rebuilt_row(shipment_id, [canonical for _, canonical, _ in rows])
    return Shipment(**{name: getattr(row, name) for name in _SHOWN}, sealed_key=rows[0][2])

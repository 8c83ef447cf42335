"""What a list shows beside the state of each shipment: the place of its last scan and the shipper's order. One statement each a page."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.identity.recipes import number_of
from statesvc.database.queries import queries
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.find import StoredShipment
from statesvc.shipments.models import DetailedShipment, EventLocation, ListedShipment
from statesvc.shipments.personal import HIDDEN
from statesvc.shipments.references import AttachedTo, order_ids
from statesvc.shipments.timeline import event_location

_SQL = queries("statesvc.shipments", "list_details")


async def with_details(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    lines: Sequence[ListedShipment],
    found: Sequence[StoredShipment],
) -> list[DetailedShipment]:
    """Add both to each line; `found`: the lines of which something was said."""
    places = await _last_locations(connection, found)
    numbers = [
        AttachedTo(line["carrier_id"], number_of(line["carrier_id"], line["tracking_number"]))
        for line in lines
    ]
    orders = await order_ids(connection, keyring, numbers)
    return [
        {**line, "last_location": places.get(line["shipment_id"]), "order_id": orders.get(number)}
        for line, number in zip(lines, numbers, strict=True)
    ]


async def _last_locations(
    connection: AsyncConnection[Any], shipments: Sequence[StoredShipment]
) -> dict[UUID, EventLocation]:
    scanned = [one for one in shipments if one.last_scan_id is not None]
    if not scanned:
        return {}
    asked = {
        "shipment_ids": [one.shipment_id for one in scanned],
        "event_ids": [one.last_scan_id for one in scanned],
        "sinces": [one.first_recorded_at for one in scanned],
        "untils": [one.recorded_at for one in scanned],
        "since": min(one.first_recorded_at for one in scanned),
        "until": max(one.recorded_at for one in scanned),
    }
    # planned each time: the bounds leave out most months
    cursor = await connection.execute(_SQL["last_scans"], asked, prepare=False)
    return {
        shipment_id: event_location(orjson.loads(decompress_json(canonical)), HIDDEN)
        for shipment_id, canonical in await cursor.fetchall()
    }

"""Observations of a shipment, as entries of the log say them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from events.entry.kinds import leaf_hash_of
from statesvc.database.queries import queries
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.as_of import Horizon
from statesvc.shipments.find import StoredShipment
from statesvc.shipments.models import ShipmentObservation

_SQL = queries("statesvc.shipments", "observation_trail")
_EVER: Final = (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))


async def read_observations(
    connection: AsyncConnection[Any],
    shipment: StoredShipment,
    *,
    recorded: tuple[datetime, datetime] = _EVER,
    horizon: Horizon | None = None,
) -> list[ShipmentObservation]:
    """Read those recorded after the first instant and up to the second, in order.

    `horizon`: only entries sealed by then.
    """
    cursor = connection.cursor(binary=True, row_factory=dict_row)
    asked = {"recorded_after": recorded[0], "recorded_upto": recorded[1], **shipment.recorded()}
    rows = await (
        await cursor.execute(_SQL["observations_of_shipment"], asked, prepare=False)
    ).fetchall()
    return [
        _observation(read_document(row))
        for row in rows
        if horizon is None or horizon.holds(row["log_index"])
    ]


def read_document(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of an entry with its `document` and `leaf_hash`, which follow
    from its canonical bytes.
    """
    canonical = decompress_json(row["canonical"])
    return {**row, "document": orjson.loads(canonical), "leaf_hash": leaf_hash_of(canonical).hex()}


def _observation(row: Mapping[str, Any]) -> ShipmentObservation:
    document = row["document"]
    details = document["details"]
    return {
        "kind": document["kind"],
        "since": document["since"],
        "cause": details["cause"],
        "hours": details["hours"],
        "status": details["status"],
        "rules": details["rules"],
        "sequence": details["sequence"],
        "version": document["version"],
        "recorded_at": row["recorded_at"],
        "batch_id": row["batch_id"],
        "ordinal": row["ordinal"],
        "leaf_hash": row["leaf_hash"],
        "sealed_at": row["sealed_at"],
        "log_index": row["log_index"],
    }

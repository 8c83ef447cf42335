"""Pages about a shipment: which of its number, and where the next page goes on."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from events.carriers import CARRIERS
from events.identity.recipes import discriminator_of, number_of
from statesvc.api.parameters import AuditParameters, HistoryParameters, ShipmentParameters
from statesvc.http.paging import decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem
from statesvc.http.unknown_carrier import unknown_carrier
from statesvc.shipments.as_of import Horizon, find_shipment_at, horizon_at
from statesvc.shipments.find import FoundShipment, OtherDiscriminators, find_shipment


@dataclass(frozen=True, slots=True)
class Resumed:
    """Position of a cursor.

    Between two pages a number may get another shipment, and the log more entries.
    """

    shipment_id: UUID | None = None
    after: int | None = None
    horizon: Horizon | None = None


async def find_asked(
    connection: AsyncConnection[Any],
    asked: ShipmentParameters | HistoryParameters,
    resumed: Resumed,
) -> tuple[FoundShipment, Horizon | None]:
    wanted: dict[str, Any] = {
        "carrier_id": asked.carrier_id,
        "number": number_of(asked.carrier_id, asked.tracking_number),
        "discriminator": discriminator_of(asked.carrier_id, asked.discriminator),
        "shipment_id": resumed.shipment_id,
    }
    horizon = None
    if asked.as_of is None:
        found = await find_shipment(connection, **wanted)
    else:
        horizon = resumed.horizon or await horizon_at(connection, asked.as_of)
        found = await find_shipment_at(connection, horizon, **wanted)
    match found:
        case FoundShipment() if (
            resumed.shipment_id is not None and found.shipment.shipment_id != resumed.shipment_id
        ):
            raise foreign_cursor()
        case FoundShipment():
            return found, horizon
        case OtherDiscriminators(count):
            raise Problem(
                Code.NOT_FOUND,
                f"the number is known {count} times, never with this discriminator; ask without it"
                " to see them",
            )
        case None if asked.carrier_id not in CARRIERS:
            raise unknown_carrier(asked.carrier_id, CARRIERS)
        case None if horizon is not None:
            raise Problem(
                Code.NOT_FOUND,
                f"no event of carrier {asked.carrier_id} that named this tracking number was sealed"
                f" by {horizon.at.isoformat()}",
            )
        case None:
            raise Problem(
                Code.NOT_FOUND,
                f"no event of carrier {asked.carrier_id} named this tracking number so far",
            )


def binding(asked: HistoryParameters | AuditParameters, what: str) -> dict[str, Any]:
    return {
        "list": what,
        "carrier_id": asked.carrier_id,
        "number": number_of(asked.carrier_id, asked.tracking_number),
        "discriminator": discriminator_of(asked.carrier_id, asked.discriminator),
        "as_of": asked.as_of,
    }


def resume(asked: HistoryParameters | AuditParameters, what: str) -> Resumed:
    if asked.cursor is None:
        return Resumed()
    try:
        shipment_id, after, *horizon = decode_cursor(
            asked.cursor, binding(asked, what), fields=2 if asked.as_of is None else 5
        )
        if not horizon:
            return Resumed(UUID(shipment_id), int(after))
        size, at, clamped = horizon
        return Resumed(
            UUID(shipment_id),
            int(after),
            Horizon(int(size), datetime.fromisoformat(at), bool(clamped)),
        )
    except (AttributeError, TypeError, ValueError):
        raise foreign_cursor() from None


def next_cursor(
    asked: HistoryParameters | AuditParameters,
    what: str,
    found: FoundShipment,
    after: int | None,
    horizon: Horizon | None,
) -> str | None:
    if after is None:
        return None
    seen: list[str | int] = (
        [] if horizon is None else [horizon.size, horizon.at.isoformat(), int(horizon.clamped)]
    )
    return encode_cursor([str(found.shipment.shipment_id), after, *seen], binding(asked, what))


def foreign_cursor() -> Problem:
    return Problem(
        Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one"
    )

"""Who read personal fields, when, and of what: one action a call, durable before the answer is sent."""

from typing import Any, Final

from aiohttp import web
from psycopg import AsyncConnection

from statesvc.http.api_keys import caller_of
from statesvc.log.actions import record_action
from statesvc.shipments.find import StoredShipment

_RECORDED: Final = web.RequestKey("personal_reading_recorded", bool)


async def record_reading(connection: AsyncConnection[Any], request: web.Request, *, call: str, target: str, carrier_id: str) -> None:
    """Of a caller with scope `pii`, in a transaction of its own."""
    async with connection.transaction():
        await record_action(
            connection,
            actor=caller_of(request).actor,
            verb="read_personal",
            target=target,
            details={"call": call, "carrier_id": carrier_id},
        )
    request[_RECORDED] = True


async def record_shipment_reading(connection: AsyncConnection[Any], request: web.Request, shipment: StoredShipment, *, call: str) -> None:
    """As `record_reading`. Of an erased shipment there is nothing personal to read."""
    if shipment.sealed_key is not None:
        target = f"shipment {shipment.shipment_id}"
        await record_reading(connection, request, call=call, target=target, carrier_id=shipment.carrier_id)


def was_recorded(request: web.Request) -> bool:
    """Whether the call left an action in the log."""
    return _RECORDED in request

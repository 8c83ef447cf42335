"""Who read personal fields, when, and of which shipment: one action a call, durable before the answer is sent."""

from typing import Any

from aiohttp import web
from psycopg import AsyncConnection

from events.log.actions import record_action
from statesvc.api.read.shipment import Shipment
from statesvc.http.keys import caller_of


async def record_reading(connection: AsyncConnection[Any], request: web.Request, shipment: Shipment, *, call: str) -> None:
    """Of a caller with scope `pii`. Of an erased shipment there is nothing personal to read."""
    if shipment.sealed_key is None:
        return
    async with connection.transaction():
        await record_action(
            connection,
            actor=caller_of(request).actor,
            verb="read_personal",
            target=f"shipment {shipment.shipment_id}",
            details={"call": call, "carrier_id": shipment.carrier_id},
        )

"""Streams are reserved for one transaction, whatever others commit meanwhile."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import AsyncConnection, AsyncCursor

from events.identity.ids import shipment_id
from statesvc.log.event_store import reserve_streams
from statesvc.log.parcel_log import link_number
from tests.world.shop import CARRIER_ID, Shop

OTHER = "bravo"
TRY: LiteralString = "pg_try_advisory_xact_lock(uuid_hash_extended(a.shipment_id, 0))"
WAIT: LiteralString = "(pg_advisory_xact_lock(uuid_hash_extended(a.shipment_id, 0)) IS NOT NULL)"
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"


@dataclass
class Slow:
    """Sends statements that reach a lock only when its holder has let it go."""

    connection: AsyncConnection[Any]

    async def execute(
        self,
        query: LiteralString,
        params: Mapping[str, Any] | None = None,
        *,
        prepare: bool | None = None,
        binary: bool = False,
    ) -> AsyncCursor[Any]:
        assert TRY in query
        return await self.connection.execute(
            query.replace(TRY, WAIT), params, prepare=prepare, binary=binary
        )


async def test_who_reserves_a_parcel_behind_another_sees_what_that_one_wrote(shop: Shop) -> None:
    parcel, made = shipment_id(CARRIER_ID, "P1", ""), shipment_id(CARRIER_ID, "P2", "")
    service_dsn = shop.database.service_dsn
    async with (
        await AsyncConnection.connect(service_dsn) as first,
        await AsyncConnection.connect(service_dsn) as second,
    ):
        for each in (parcel, made):
            await first.execute("SELECT pg_advisory_xact_lock(uuid_hash_extended(%s, 0))", (each,))
        await link_number(first, shop.keyring, OTHER, "Q1", (CARRIER_ID, "P1"))
        await link_number(first, shop.keyring, CARRIER_ID, "P2", (OTHER, "Q2"))
        reserving = asyncio.ensure_future(
            reserve_streams(Slow(second), {parcel, made}, bounded=True)
        )
        await shop.until(WAITING, 1)
        await first.commit()
        assert await (await reserving).rows() == {parcel: [shipment_id(OTHER, "Q1", "")]}

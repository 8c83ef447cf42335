"""Reads of the log: events of a shipment, tombstones, and nodes of the tree."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import pytest
from psycopg import AsyncConnection, AsyncCursor

from events.identity.ids import shipment_id
from statesvc.log.checkpoint_store import CheckpointStore, checkpoint_store_at
from statesvc.log.event_store import reserve_streams
from statesvc.log.parcel_log import link_number
from statesvc.log.tombstones import Tombstone, TombstoneError, TombstoneKind, Tombstones
from tests.world.object_store import ObjectStore
from tests.world.worker_harness import CARRIER_ID, WorkerHarness

PARCEL = Tombstone(
    kind=TombstoneKind.SHIPMENT,
    subject="00112233-4455-6677-8899-aabbccddeeff",
    details={"carrier_id": "ups", "number": "1Z1", "discriminator": "", "why": "asked to"},
)
KEY = Tombstone(kind=TombstoneKind.API_KEY, subject="00112233aabb", details={})


@pytest.fixture(params=["folder", "objects"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, object_store: ObjectStore
) -> CheckpointStore:
    if request.param == "folder":
        return checkpoint_store_at(str(tmp_path / "shelf"))
    return checkpoint_store_at(object_store.place("some/prefix"))


async def test_what_was_published_is_read_back_once_and_never_changed(
    store: CheckpointStore,
) -> None:
    tombstones = Tombstones([(store, "tombstones")])
    assert await tombstones.read() == []
    await tombstones.publish([PARCEL, KEY])
    await tombstones.publish(
        [
            Tombstone(
                kind=PARCEL.kind, subject=PARCEL.subject, details={**PARCEL.details, "why": "again"}
            )
        ]
    )
    assert await tombstones.read() == [KEY, PARCEL]


async def test_each_place_gets_them_and_one_is_enough_to_read_them(
    tmp_path: Path, object_store: ObjectStore
) -> None:
    places = [
        (checkpoint_store_at(object_store.place()), "tombstones"),
        (checkpoint_store_at(str(tmp_path)), "checkpoint.tombstones"),
    ]
    await Tombstones(places).publish([KEY])
    assert [path.name for path in (tmp_path / "checkpoint.tombstones").iterdir()] == [KEY.name]
    assert list(object_store.objects) == [f"tombstones/{KEY.name}"]
    object_store.delete(f"tombstones/{KEY.name}")
    assert await Tombstones(places).read() == [KEY]


async def test_a_place_that_is_away_or_holds_something_else_is_no_empty_one(
    tmp_path: Path, object_store: ObjectStore
) -> None:
    away = Tombstones([(checkpoint_store_at(object_store.place()), "tombstones")])
    object_store.cut()
    with pytest.raises(TombstoneError, match="cannot be written"):
        await away.publish([KEY])
    with pytest.raises(TombstoneError, match="cannot be listed"):
        await away.read()
    (tmp_path / "tombstones").mkdir()
    (tmp_path / "tombstones" / "x").write_text("{}")
    with pytest.raises(TombstoneError, match="that is none"):
        await Tombstones([(checkpoint_store_at(str(tmp_path)), "tombstones")]).read()


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


async def test_who_reserves_a_parcel_behind_another_sees_what_that_one_wrote(
    harness: WorkerHarness,
) -> None:
    parcel, made = shipment_id(CARRIER_ID, "P1", ""), shipment_id(CARRIER_ID, "P2", "")
    service_dsn = harness.database.service_dsn
    async with (
        await AsyncConnection.connect(service_dsn) as first,
        await AsyncConnection.connect(service_dsn) as second,
    ):
        for each in (parcel, made):
            await first.execute("SELECT pg_advisory_xact_lock(uuid_hash_extended(%s, 0))", (each,))
        await link_number(first, harness.keyring, OTHER, "Q1", (CARRIER_ID, "P1"))
        await link_number(first, harness.keyring, CARRIER_ID, "P2", (OTHER, "Q2"))
        reserving = asyncio.ensure_future(
            reserve_streams(Slow(second), {parcel, made}, bounded=True)
        )
        await harness.until(WAITING, 1)
        await first.commit()
        assert await (await reserving).rows() == {parcel: [shipment_id(OTHER, "Q1", "")]}

"""Tombstones survive a restore, outside the database."""

from pathlib import Path

import pytest

from statesvc.log.checkpoint_store import CheckpointStore, checkpoint_store_at
from statesvc.log.tombstones import Tombstone, TombstoneError, TombstoneKind, Tombstones
from tests.world.object_store import ObjectStore

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

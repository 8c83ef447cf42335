"""Heads are kept on a shelf outside and stamped; sealing refuses a shelf that says otherwise, and
keeps no wrong stamp.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from events.merkle.checkpoint import Checkpoint, NoteSigner
from statesvc.database.pool import make_pool
from statesvc.log.checkpoint_store import (
    LATEST,
    CheckpointStore,
    CheckpointStoreError,
    ContradictedError,
    checkpoint_store_at,
)
from statesvc.log.signing_keys import rotate
from statesvc.log.timestamp import inquire
from statesvc.sealer import head_follower, publisher
from statesvc.sealer import timestamper as stamper
from statesvc.sealer.leadership import take_stock
from statesvc.sealer.publisher import Publisher
from statesvc.sealer.seal import RefusalError
from statesvc.sealer.timestamper import Authority, Stamper
from statesvc.telemetry.metrics import Telemetry
from tests.world.attack import attack, places, verify
from tests.world.log_builder import MASTER, NOWHERE, LogBuilder, log_builder
from tests.world.object_store import ObjectStore
from tests.world.stamping import Tsa, make_tsa, serving
from tests.world.waiting import until
from tests.world.worker_harness import LIMITS

SIGNER = NoteSigner.fresh("example.org/log")


def note(size: int, root: int = 1) -> str:
    return Checkpoint(SIGNER.verifier.name, size, bytes([root]) * 32).signed([SIGNER])


@pytest.fixture(params=["folder", "objects"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, object_store: ObjectStore
) -> tuple[CheckpointStore, Any]:
    """Return a shelf, and what one reads of it by other means."""
    if request.param == "folder":
        folder = tmp_path / "shelf"
        return checkpoint_store_at(
            str(folder)
        ), lambda key: (folder / key).read_text() if (folder / key).exists() else None
    store = checkpoint_store_at(object_store.place("some/prefix"))
    return (
        store,
        lambda key: (
            body.decode() if (body := object_store.objects.get(f"some/prefix/{key}")) else None
        ),
    )


async def test_each_is_kept_and_the_newest_is_the_latest(
    place: tuple[CheckpointStore, Any],
) -> None:
    store, read = place
    assert await store.latest() is None
    for size in (3, 7, 5):
        await store.keep(note(size))
    assert [read(f"1.{size}") for size in (3, 5, 7)] == [note(3), note(5), note(7)]
    assert await store.latest() == note(7) == read(LATEST)
    # the same again changes nothing
    await store.keep(note(7))


async def test_what_was_published_is_never_overwritten(place: tuple[CheckpointStore, Any]) -> None:
    store, read = place
    await store.keep(note(3))
    with pytest.raises(ContradictedError, match="two histories"):
        await store.keep(note(3, root=2))
    assert read("1.3") == read(LATEST) == note(3)


async def test_a_place_that_keeps_what_it_has_is_accepted_at_each_start(
    place: tuple[CheckpointStore, Any],
) -> None:
    store, _ = place
    for _start in range(2):
        await store.require_no_overwriting()


async def test_a_store_that_overwrites_is_refused_before_anything_is_published(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    async def put(request: web.Request) -> web.Response:
        written.append(request.path)
        return web.Response(headers={"ETag": '"1"'})

    app = web.Application()
    app.router.add_put("/{key:.*}", put)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    async with TestServer(app) as server:
        store = checkpoint_store_at(f"s3://bucket/p?endpoint=http://127.0.0.1:{server.port}")
        with pytest.raises(CheckpointStoreError, match="overwrites"):
            await store.require_no_overwriting()
        async with log_builder(database) as log, publishing(database, store) as (_, sealed):
            await log.parcel("1Z0001")
            await log.seal()
            sealed.set()
            await until(lambda: len(written) == 4)
    assert set(written) == {"/bucket/p/probe"}


@pytest.mark.parametrize(
    "text", ["ftp://host/x", "s3://", "s3://user:secret@bucket/x", "s3://bucket/x?secret=y"]
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(CheckpointStoreError) as caught:
        checkpoint_store_at(text)
    assert "secret@" not in str(caught.value)


@asynccontextmanager
async def publishing(
    database: Any, store: CheckpointStore
) -> AsyncIterator[tuple[Publisher, asyncio.Event]]:
    telemetry, sealed = Telemetry(), asyncio.Event()
    async with make_pool(database.service_dsn, name="publisher-test", limits=LIMITS) as pool:
        working = Publisher(
            pool,
            store,
            interval_seconds=0.01,
            leads=lambda: True,
            sealed=sealed,
            telemetry=telemetry,
        )
        working.start()
        try:
            yield working, sealed
        finally:
            await working.close()
            telemetry.close()


async def test_a_restored_backup_is_noticed_by_what_lies_on_the_shelf(
    database: Any, place: tuple[CheckpointStore, Any]
) -> None:
    store, read = place
    async with log_builder(database) as log, publishing(database, store) as (_, sealed):
        await log.parcel("1Z0001")
        first = await log.seal()
        sealed.set()
        await until(lambda: read(LATEST) == first.note)
        publication = replace(NOWHERE, store=store)
        await take_stock(log.connection, MASTER, publication)
        await store.keep(note(first.tree_size + 5).replace("example.org/log", log.origin))
        with pytest.raises(RefusalError):
            await take_stock(log.connection, MASTER, publication)


async def test_a_store_that_is_away_is_asked_again_and_holds_the_lead_back(
    database: Any, event_log: LogBuilder, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "_RETRY_SECONDS", 0.02)
    store = checkpoint_store_at(object_store.place())
    object_store.cut()
    with pytest.raises(RefusalError, match="cannot be read"):
        await take_stock(event_log.connection, MASTER, replace(NOWHERE, store=store))
    async with publishing(database, store) as (_, sealed):
        await event_log.parcel("1Z0001")
        head = await event_log.seal()
        sealed.set()
        await asyncio.sleep(0.1)
        assert object_store.objects == {}
        object_store.heal()
        await until(lambda: _latest(object_store) == head.note)


async def test_another_history_on_the_shelf_is_said(
    database: Any, event_log: LogBuilder, tmp_path: Path
) -> None:
    store = checkpoint_store_at(str(tmp_path / "shelf"))
    await event_log.parcel("1Z0001")
    head = await event_log.seal()
    await store.keep(note(head.tree_size))
    async with publishing(database, store) as (working, _):
        await until(lambda: working.refusal)
        assert "two histories" in (working.refusal or "")


def _latest(store: ObjectStore) -> str | None:
    body = store.objects.get(LATEST)
    return None if body is None else body.decode()


STAMPS = "SELECT tree_size, authority FROM statesvc.checkpoint_stamp ORDER BY received_at"


@pytest.fixture
async def tsa(tmp_path: Path) -> AsyncIterator[Tsa]:
    async with serving(make_tsa(tmp_path / "tsa")) as running:
        yield running


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamper, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(stamper, "_CHECK_SECONDS", 0.05)
    monkeypatch.setattr(head_follower, "_STANDBY_SECONDS", 0.01)


@asynccontextmanager
async def stamping(
    database: Any,
    tsa: Tsa,
    *,
    interval_seconds: float = 3600,
    leads: Callable[[], bool] = lambda: True,
) -> AsyncIterator[Any]:
    telemetry, sealed = Telemetry(), asyncio.Event()
    authority = Authority(url=tsa.url, trust=tsa.trust, interval_seconds=interval_seconds)
    async with make_pool(database.service_dsn, name="stamper-test", limits=LIMITS) as pool:
        working = Stamper(pool, authority, leads=leads, sealed=sealed, telemetry=telemetry)
        working.start()
        try:
            yield sealed
        finally:
            await working.close()
            telemetry.close()


async def stamps(log: LogBuilder, count: int) -> list[Any]:
    await until(lambda: log.rows(f"SELECT FROM ({STAMPS}) s OFFSET {count - 1}"))
    return await log.rows(STAMPS)


async def test_one_an_interval_and_one_for_a_new_key(database: Any, tsa: Tsa) -> None:
    async with log_builder(database) as log, stamping(database, tsa) as sealed:
        await log.parcel("1Z0001")
        first = await log.seal()
        sealed.set()
        assert await stamps(log, 1) == [(first.tree_size, "CN=Stamps & Sons")]
        await log.parcel("1Z0002")
        await log.seal()
        sealed.set()
        await asyncio.sleep(0.3)
        assert len(await log.rows(STAMPS)) == 1
        async with log.connection.transaction():
            await rotate(log.connection, MASTER, actor="cli:ops", why="a test")
        newest = await log.seal()
        sealed.set()
        assert (await stamps(log, 2))[1][0] == newest.tree_size
        # the interval is over by the database's clock
        await log.parcel("1Z0003")
        newest = await log.seal()
        await database.clock.advance(3601)
        sealed.set()
        assert (await stamps(log, 3))[2][0] == newest.tree_size
        assert len(tsa.asked) == 3


async def test_a_standby_does_not_ask(database: Any, tsa: Tsa) -> None:
    async with log_builder(database) as log, stamping(database, tsa, leads=lambda: False) as sealed:
        await log.parcel("1Z0001")
        await log.seal()
        sealed.set()
        await asyncio.sleep(0.2)
        assert tsa.asked == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", ["garbage", "huge", "500", "redirect", "another", "nonce", "slow"]
)
async def test_a_wrong_answer_is_not_kept_and_asked_for_again(
    database: Any, tsa: Tsa, fault: str, monkeypatch: pytest.MonkeyPatch, event_log: LogBuilder
) -> None:
    monkeypatch.setattr(stamper, "_ANSWER_SECONDS", 0.5)
    await event_log.parcel("1Z0001")
    await event_log.seal()
    if fault == "another":
        tsa.asked.append(inquire("another note").request)
    tsa.faults = [fault, fault]
    async with stamping(database, tsa) as sealed:
        # sealing does not wait for it
        await event_log.parcel("1Z0002")
        await event_log.seal()
        sealed.set()
        ((_, authority),) = await stamps(event_log, 1)
    assert authority == "CN=Stamps & Sons"
    assert tsa.faults == []
    assert verify(database, trust=tsa.trust).consistent


async def test_somebody_elses_stamp_is_refused(database: Any, tsa: Tsa, tmp_path: Path) -> None:
    stranger = make_tsa(tmp_path / "stranger")
    tsa.root = stranger.root
    async with log_builder(database) as log, stamping(database, tsa) as sealed:
        await log.parcel("1Z0001")
        await log.seal()
        sealed.set()
        await until(lambda: len(tsa.asked) >= 2)
        assert await log.rows(STAMPS) == []


@pytest.mark.slow
async def test_verify_finds_what_was_changed_about_a_stamp(
    database: Any, tsa: Tsa, tmp_path: Path, event_log: LogBuilder
) -> None:
    await event_log.parcel("1Z0001")
    await event_log.seal()
    async with stamping(database, tsa):
        await stamps(event_log, 1)
    await event_log.parcel("1Z0002")
    await event_log.seal()
    sound = verify(database, trust=tsa.trust)
    assert (places(sound), sound.stamps) == ([], 1)
    assert "trusted" in places(verify(database, trust=make_tsa(tmp_path / "stranger").trust))[0]
    await attack(database, "UPDATE statesvc.checkpoint_stamp SET authority = 'CN=Somebody'")
    assert "is not who signed" in places(verify(database))[0]
    await attack(
        database,
        "UPDATE statesvc.checkpoint_stamp SET authority = 'CN=Stamps & Sons', stamped_at ="
        " stamped_at - interval '1 h'",
    )
    assert "is not the time" in places(verify(database))[0]
    await attack(
        database,
        "UPDATE statesvc.checkpoint_stamp SET stamped_at = stamped_at + interval '1 h'",
        "UPDATE statesvc.checkpoint_stamp SET tree_size = (SELECT max(tree_size) FROM"
        " statesvc.checkpoint)",
    )
    assert "something else than this checkpoint" in places(verify(database))[0]
    await attack(database, "UPDATE statesvc.checkpoint_stamp SET tree_size = 4711")
    assert "no checkpoint of this size" in places(verify(database))[0]

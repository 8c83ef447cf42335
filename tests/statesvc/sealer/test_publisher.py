"""Checkpoints on a shelf outside: each under its size for ever, the newest as `latest`, and
nothing signed below it.
"""

import asyncio
from collections.abc import AsyncIterator
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
from statesvc.sealer import publisher
from statesvc.sealer.leadership import take_stock
from statesvc.sealer.publisher import Publisher
from statesvc.sealer.seal import RefusalError
from statesvc.telemetry.metrics import Telemetry
from tests.world.log_builder import MASTER, NOWHERE, LogBuilder, log_builder
from tests.world.object_store import ObjectStore
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

"""Everything opens under the new master key alone, and an erasure that came between stands."""

import os
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys, SealError
from statesvc.database.keyring_store import load_keyring
from statesvc.delivery.outgoing import Login
from statesvc.privacy import key_rotation as rotation
from statesvc.privacy.key_rotation import RotatedKeys, rotate
from statesvc.subscriptions.subscription_secrets import (
    Secret,
    open_headers,
    open_login,
    open_secrets,
    seal_headers,
    seal_login,
    seal_secrets,
)
from tests.statesvc.worker.log_check import check_log
from tests.world.worker_harness import WorkerHarness, shipment

OLD = bytes(range(32))
NEW = os.urandom(32)
LOGIN = Login("user", "hunter2")
HEADERS = {"Authorization": "Basic eA=="}


async def rotate_keys(harness: WorkerHarness, owner: AsyncConnection[Any]) -> RotatedKeys:
    keyring = replace(harness.keyring, master=MasterKeys([NEW, OLD]))
    return await rotate(owner, keyring, actor="tester", progress=lambda *_: None)


async def subscribe(harness: WorkerHarness, owner: AsyncConnection[Any]) -> tuple[UUID, Secret]:
    subscription_id, secret = uuid4(), Secret.fresh()
    await owner.execute(
        "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url,"
        " sealed_secrets, sealed_login, sealed_headers) VALUES (%s, now(), 'x', 'x', 'x', %s,"
        " %s, %s)",
        (
            subscription_id,
            seal_secrets(harness.keyring, subscription_id, [secret]),
            seal_login(harness.keyring, subscription_id, LOGIN),
            seal_headers(harness.keyring, subscription_id, HEADERS),
        ),
    )
    return subscription_id, secret


async def test_everything_opens_under_the_new_key_alone(
    harness: WorkerHarness, owner: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "_BATCH", 2)
    for number in ("A1", "A2", "A3", "A4", "A5"):
        await harness.ingest(
            {"number": number, "status": "picked_up", "description": "left with Ms. Example"}
        )
    subscription_id, secret = await subscribe(harness, owner)
    assert await rotate_keys(harness, owner) == RotatedKeys(
        service_keys=2, subscriptions=1, shipments=5
    )
    assert await rotate_keys(harness, owner) == RotatedKeys(), "a second run finds nothing to do"
    keyring = await load_keyring(harness.connection, MasterKeys([NEW]))
    assert keyring.digest_key == harness.keyring.digest_key
    assert await check_log(harness.connection, keyring) > 5
    sealed = await harness.value("SELECT sealed_secrets FROM statesvc.subscription")
    assert open_secrets(keyring, subscription_id, sealed) == (secret,)
    assert (
        open_login(
            keyring,
            subscription_id,
            await harness.value("SELECT sealed_login FROM statesvc.subscription"),
        )
        == LOGIN
    )
    assert (
        open_headers(
            keyring,
            subscription_id,
            await harness.value("SELECT sealed_headers FROM statesvc.subscription"),
        )
        == HEADERS
    )
    with pytest.raises(SealError, match="does not hold it"):
        await load_keyring(harness.connection, MasterKeys([OLD]))
    assert (
        await harness.value("SELECT count(*) FROM statesvc.action WHERE verb = 'rotate_master_key'")
        == 2
    )


async def test_an_erasure_that_comes_between_stands(
    harness: WorkerHarness, owner: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.ingest({"number": "A1", "status": "picked_up"})
    rewrap = rotation.rewrap

    async def late(connection: Any, rows: Any) -> int:
        await owner.execute(
            "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = now() WHERE shipment_id"
            " = %s",
            (shipment("A1"),),
        )
        return await rewrap(connection, rows)

    monkeypatch.setattr(rotation, "rewrap", late)
    assert (await rotate_keys(harness, owner)).shipments == 0
    assert await harness.value("SELECT sealed_key IS NULL FROM statesvc.stream")

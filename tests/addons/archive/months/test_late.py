"""Late statements about a shipment whose earlier events are archived take effect as if they were
there.
"""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
import pytest
from psycopg import AsyncConnection

from events.identity.ids import identify
from events.vocabulary import Status, Verdict
from statesvc.api.submission.submit import Submitted, submit
from statesvc.database.pool import Pool
from statesvc.files.archive_errors import EntryFileError
from statesvc.subscriptions import subscription_store as store
from tests.world.attack import places
from tests.world.deliver import deliver
from tests.world.log_archiver import Archiver, shipment
from tests.world.log_builder import scan
from tests.world.worker_harness import WorkerHarness
from tests.world.worker_harness import shipment as acme


async def _state(archiver: Archiver, number: str) -> Any:
    rows = await archiver.log.rows(
        "SELECT version, status, state FROM statesvc.shipment WHERE shipment_id ="
        f" '{shipment(number)}'"
    )
    return rows[0]


@pytest.mark.usefixtures("two_months")
async def test_an_event_in_order_asks_no_archive(archiver: Archiver) -> None:
    await archiver.archived()
    for path in archiver.folder.iterdir():
        path.unlink()
    await archiver.log.append(scan("1Z0001", 900, None))
    assert (await _state(archiver, "1Z0001"))[0] == 6


@pytest.mark.usefixtures("two_months")
async def test_a_shipment_comes_back_once_and_whole(archiver: Archiver) -> None:
    held = "SELECT * FROM statesvc.{} WHERE shipment_id = '{}' ORDER BY batch_id, ordinal"
    kinds = ("event", "transition", "attempt", "conflict")
    before = {
        kind: await archiver.log.rows(held.format(kind, shipment("1Z0002"))) for kind in kinds
    }
    await archiver.archived()
    assert await archiver.log.rows(held.format("event", shipment("1Z0002"))) == []
    for _ in range(2):
        await archiver.archive.restore_number(archiver.connection, "ups", "1Z0002")
        assert {
            kind: await archiver.log.rows(held.format(kind, shipment("1Z0002"))) for kind in kinds
        } == before
    assert await archiver.log.rows(held.format("event", shipment("1Z0001"))) == []


async def test_notifications_leave_and_come_back_with_their_fan_outs(archiver: Archiver) -> None:
    log, held = (
        archiver.log,
        "SELECT * FROM statesvc.notification WHERE shipment_id = '{}' ORDER BY sequence",
    )
    old, active = held.format(shipment("1Z0001")), held.format(shipment("1Z0003"))
    request = store.SubscriptionRequest(url="https://subscriber.invalid/hook")
    await store.create(
        archiver.connection, log.keyring, request, actor="key:test", owner="bootstrap"
    )
    await log.parcel("1Z0001")
    await log.parcel("1Z0003")
    await _deliver_all(archiver)
    await archiver.pass_days(30)
    await log.append(scan("1Z0003", 60, None))
    await _deliver_all(archiver)
    await archiver.pass_days(30)
    before, of_active = await log.rows(old), await log.rows(active)
    assert len(before) > 2
    await archiver.archived()
    assert (await log.rows(old), await log.rows(active)) == ([], of_active)
    assert places(archiver.verify()) == []
    await archiver.archive.restore_shipments(archiver.connection, [shipment("1Z0001")])
    assert (await log.rows(old), await log.rows(active)) == (before, of_active)
    assert places(archiver.verify()) == []
    await archiver.as_owner(
        f"DELETE FROM statesvc.notification WHERE shipment_id = '{shipment('1Z0001')}' AND"
        " sequence = 2"
    )
    assert "it was deleted" in str(archiver.verify().faults)


async def _deliver_all(archiver: Archiver) -> None:
    while await archiver.log.rows("SELECT FROM statesvc.outbox"):
        await deliver(archiver.connection, archiver.log.keyring)
    await archiver.log.seal()


@pytest.mark.usefixtures("two_months")
async def test_without_the_file_a_reader_is_told_which_and_what_to_do(
    archiver: Archiver, api: Any
) -> None:
    month = await archiver.archived()
    path = archiver.folder / str(month.file_name)
    away = path.rename(path.with_suffix(".away"))
    with pytest.raises(EntryFileError, match="it is missing"):
        await archiver.archive.restore_shipments(archiver.connection, [shipment("1Z0001")])
    headers = {"Authorization": f"Bearer {await api.key('read audit')}"}
    for call in ("/v1/shipments/ups/1Z0001/history", "/v1/shipments/ups/1Z0001/audit", "/v1/feed"):
        async with api.client.get(call, headers=headers) as response:
            output = await response.json()
            assert (response.status, output["code"]) == (503, "log_unavailable"), output
            assert path.name in output["detail"]
            assert "backup" in output["detail"]
    async with api.client.get("/v1/shipments/ups/1Z0007/history", headers=headers) as response:
        assert response.status == 200
    away.rename(path)
    async with api.client.get("/v1/shipments/ups/1Z0001/history", headers=headers) as response:
        assert len(orjson.loads(await response.read())["items"]) == 5
    assert UUID(int=0) not in await archiver.residents()


@pytest.mark.usefixtures("two_months")
async def test_two_who_ask_at_once_bring_it_back_once(archiver: Archiver) -> None:
    await archiver.archived()

    async def ask() -> None:
        async with await AsyncConnection.connect(
            archiver.database.service_dsn, autocommit=True
        ) as connection:
            await archiver.archive.restore_shipments(connection, [shipment("1Z0001")])
            row = await (
                await connection.execute(
                    "SELECT count(*) FROM statesvc.event WHERE shipment_id = %s",
                    (shipment("1Z0001"),),
                )
            ).fetchone()
            assert row == (5,)

    await asyncio.gather(ask(), ask(), ask())
    assert places(archiver.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_a_worker_brings_back_what_a_late_scan_needs(
    archiver: Archiver, harness: WorkerHarness
) -> None:
    await archiver.archived()
    harness.context = replace(harness.context, archive=archiver.archive)
    await harness.ingest(
        {"number": "L1", "status": "picked_up", "minute": 10},
        {"number": "L1", "status": "delivered", "minute": 500},
    )
    await archiver.log.seal()
    await archiver.pass_days(70)
    assert len((await archiver.run_pass()).archived) == 2
    held = (
        "SELECT version FROM statesvc.event WHERE shipment_id = '"
        + str(acme("L1"))
        + "' ORDER BY version"
    )
    assert await archiver.log.rows(held) == []
    await harness.ingest({"number": "L1", "status": "in_transit", "minute": 90})
    assert await archiver.log.rows(held) == [(1,), (2,), (3,)]
    assert await harness.verdicts() == {"appended": 3.0}
    assert await harness.value("SELECT count(*) FROM statesvc.dead_letter") == 0
    await archiver.log.seal()
    assert places(archiver.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_a_submission_brings_back_what_it_needs(archiver: Archiver, pool: Pool) -> None:
    await archiver.archived()
    event = identify(
        scan("1Z0001", 2, Status.IN_TRANSIT, code="LATE"),
        carrier_id="ups",
        digest=archiver.log.keyring.carrier_digest("ups"),
    )
    done = await submit(
        pool, archiver.log.keyring, [event], body=b"{}", writer="api-1", archive=archiver.archive
    )
    assert isinstance(done, Submitted)
    assert done.verdicts == (Verdict.APPENDED,)
    assert (await _state(archiver, "1Z0001"))[:2] == (6, "delivered")

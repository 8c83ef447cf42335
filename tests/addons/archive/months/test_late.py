"""Late statements about a shipment whose earlier events are archived take effect as if they were
there.
"""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from psycopg import AsyncConnection

from events.crypto.sealing import SealingKey
from events.entry.kinds import Provenance
from events.identity.ids import identify
from events.vocabulary import Status, Verdict
from statesvc.api.submission.submit import Submitted, submit
from statesvc.append.append_batch import AppendBatch
from statesvc.append.transaction import append
from statesvc.database.pool import Pool
from statesvc.files.archive_errors import ArchivedHistoryError, EntryFileError
from statesvc.reading.read_message import Read
from statesvc.subscriptions import subscription_store as store
from statesvc.telemetry.metrics import Telemetry
from statesvc.worker.batch_context import BatchContext
from tests.world.attack import places
from tests.world.deliver import deliver
from tests.world.log_archivist import Archivist, shipment
from tests.world.log_builder import scan
from tests.world.shop import ACME, CARRIER_ID, Shop
from tests.world.shop import shipment as acme


async def _state(archivist: Archivist, number: str) -> Any:
    rows = await archivist.log.rows(
        "SELECT version, status, state FROM statesvc.shipment WHERE shipment_id ="
        f" '{shipment(number)}'"
    )
    return rows[0]


@pytest.mark.usefixtures("two_months")
async def test_a_late_event_needs_the_archived_history_and_gets_it(archivist: Archivist) -> None:
    await archivist.archived()
    late = scan("1Z0001", 2, Status.IN_TRANSIT, code="LATE")
    with pytest.raises(ArchivedHistoryError) as away:
        await archivist.log.say(late)
    assert away.value.shipments == {shipment("1Z0001")}
    await archivist.archive.restore_shipments(archivist.connection, away.value.shipments)
    await archivist.log.say(late)
    await archivist.log.seal()
    version, status, _ = await _state(archivist, "1Z0001")
    assert (version, status) == (6, "delivered")
    assert (await archivist.residents())[shipment("1Z0001")] == "asked"
    assert places(archivist.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_an_event_in_order_asks_no_archive(archivist: Archivist) -> None:
    await archivist.archived()
    for path in archivist.folder.iterdir():
        path.unlink()
    await archivist.log.say(scan("1Z0001", 900, None))
    assert (await _state(archivist, "1Z0001"))[0] == 6


@pytest.mark.usefixtures("two_months")
async def test_a_shipment_comes_back_once_and_whole(archivist: Archivist) -> None:
    held = "SELECT * FROM statesvc.{} WHERE shipment_id = '{}' ORDER BY batch_id, ordinal"
    kinds = ("event", "transition", "attempt", "conflict")
    before = {
        kind: await archivist.log.rows(held.format(kind, shipment("1Z0002"))) for kind in kinds
    }
    await archivist.archived()
    assert await archivist.log.rows(held.format("event", shipment("1Z0002"))) == []
    for _ in range(2):
        await archivist.archive.restore_number(archivist.connection, "ups", "1Z0002")
        assert {
            kind: await archivist.log.rows(held.format(kind, shipment("1Z0002"))) for kind in kinds
        } == before
    assert await archivist.log.rows(held.format("event", shipment("1Z0001"))) == []


async def test_notifications_leave_and_come_back_with_their_fan_outs(archivist: Archivist) -> None:
    log, held = (
        archivist.log,
        "SELECT * FROM statesvc.notification WHERE shipment_id = '{}' ORDER BY sequence",
    )
    old, active = held.format(shipment("1Z0001")), held.format(shipment("1Z0003"))
    request = store.SubscriptionRequest(url="https://subscriber.invalid/hook")
    await store.create(
        archivist.connection, log.keyring, request, actor="key:test", owner="bootstrap"
    )
    await log.parcel("1Z0001")
    await log.parcel("1Z0003")
    await _deliver_all(archivist)
    await archivist.pass_days(30)
    await log.say(scan("1Z0003", 60, None))
    await _deliver_all(archivist)
    await archivist.pass_days(30)
    before, of_active = await log.rows(old), await log.rows(active)
    assert len(before) > 2
    await archivist.archived()
    assert (await log.rows(old), await log.rows(active)) == ([], of_active)
    assert places(archivist.verify()) == []
    await archivist.archive.restore_shipments(archivist.connection, [shipment("1Z0001")])
    assert (await log.rows(old), await log.rows(active)) == (before, of_active)
    assert places(archivist.verify()) == []
    await archivist.as_owner(
        f"DELETE FROM statesvc.notification WHERE shipment_id = '{shipment('1Z0001')}' AND"
        " sequence = 2"
    )
    assert "it was deleted" in str(archivist.verify().faults)


async def _deliver_all(archivist: Archivist) -> None:
    while await archivist.log.rows("SELECT FROM statesvc.outbox"):
        await deliver(archivist.connection, archivist.log.keyring)
    await archivist.log.seal()


@pytest.mark.usefixtures("two_months")
async def test_the_archive_does_not_change_a_verdict(archivist: Archivist) -> None:
    said = [
        scan("1Z0001", 0, Status.INFO_RECEIVED),
        scan("1Z0002", 50, None, code="A1", native_id="scan-1Z0002"),
        scan("1Z0002", 50, None, code="B2", native_id="scan-1Z0002"),
        scan("1Z0002", 50, None, code="C3", native_id="scan-1Z0002"),
    ]
    before = await verdicts(archivist, *said)
    await archivist.archived()
    assert (
        await verdicts(archivist, *said)
        == before
        == [Verdict.DUPLICATE, Verdict.DUPLICATE, Verdict.CONFLICT, Verdict.CONFLICT]
    )


async def verdicts(archivist: Archivist, *readings: Any) -> list[Verdict]:
    """Return what the log would say; nothing of it stays."""
    keyring, at = archivist.log.keyring, datetime(2026, 3, 1, tzinfo=UTC)
    source = Provenance(
        message_id=uuid4(),
        body_commitment=bytes(32),
        received_at=at,
        normalizer="ups",
        normalizer_version="1",
    )
    events = tuple(
        identify(reading, carrier_id="ups", digest=keyring.carrier_digest("ups"))
        for reading in readings
    )
    read = Read(
        source=source,
        carrier_id="ups",
        events=events,
        rejections=(),
        body_key=SealingKey.fresh(),
        sealed_key=b"",
    )
    async with archivist.connection.transaction(force_rollback=True):
        return (
            await append(AppendBatch(archivist.connection, keyring, [read], "worker-1"))
        ).verdicts


@pytest.mark.usefixtures("two_months")
async def test_without_the_file_a_reader_is_told_which_and_what_to_do(
    archivist: Archivist, api: Any
) -> None:
    month = await archivist.archived()
    path = archivist.folder / str(month.file_name)
    away = path.rename(path.with_suffix(".away"))
    with pytest.raises(EntryFileError, match="it is missing"):
        await archivist.archive.restore_shipments(archivist.connection, [shipment("1Z0001")])
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
    assert UUID(int=0) not in await archivist.residents()


@pytest.mark.usefixtures("two_months")
async def test_two_who_ask_at_once_bring_it_back_once(archivist: Archivist) -> None:
    await archivist.archived()

    async def ask() -> None:
        async with await AsyncConnection.connect(
            archivist.database.service_dsn, autocommit=True
        ) as connection:
            await archivist.archive.restore_shipments(connection, [shipment("1Z0001")])
            row = await (
                await connection.execute(
                    "SELECT count(*) FROM statesvc.event WHERE shipment_id = %s",
                    (shipment("1Z0001"),),
                )
            ).fetchone()
            assert row == (5,)

    await asyncio.gather(ask(), ask(), ask())
    assert places(archivist.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_a_worker_brings_back_what_a_late_scan_needs(
    archivist: Archivist, pool: Pool
) -> None:
    await archivist.archived()
    telemetry = Telemetry()
    keyring = archivist.log.keyring
    context = BatchContext(
        pool=pool,
        keyring=keyring,
        carriers={CARRIER_ID: ACME},
        telemetry=telemetry,
        worker="worker-1",
        archive=archivist.archive,
    )
    shop = Shop(context, archivist.connection, archivist.database, keyring)
    await shop.say(
        {"number": "L1", "status": "picked_up", "minute": 10},
        {"number": "L1", "status": "delivered", "minute": 500},
    )
    await archivist.log.seal()
    await archivist.pass_days(70)
    assert len((await archivist.run_pass()).archived) == 2
    held = (
        "SELECT version FROM statesvc.event WHERE shipment_id = '"
        + str(acme("L1"))
        + "' ORDER BY version"
    )
    assert await archivist.log.rows(held) == []
    await shop.say({"number": "L1", "status": "in_transit", "minute": 90})
    assert await archivist.log.rows(held) == [(1,), (2,), (3,)]
    assert await shop.verdicts() == {"appended": 3.0}
    assert await shop.value("SELECT count(*) FROM statesvc.dead_letter") == 0
    telemetry.close()
    await archivist.log.seal()
    assert places(archivist.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_a_submission_brings_back_what_it_needs(archivist: Archivist, pool: Pool) -> None:
    await archivist.archived()
    event = identify(
        scan("1Z0001", 2, Status.IN_TRANSIT, code="LATE"),
        carrier_id="ups",
        digest=archivist.log.keyring.carrier_digest("ups"),
    )
    done = await submit(
        pool, archivist.log.keyring, [event], body=b"{}", writer="api-1", archive=archivist.archive
    )
    assert isinstance(done, Submitted)
    assert done.verdicts == (Verdict.APPENDED,)
    assert (await _state(archivist, "1Z0001"))[:2] == (6, "delivered")

"""Reading and telling again, long after, reach into months that are archived."""

from dataclasses import replace
from uuid import uuid4

import pytest

from statesvc.database.pool import Pool
from statesvc.reading.rollout_store import RolloutSettings, set_rollout
from statesvc.subscriptions.replay import ReplayRequest, replay
from statesvc.telemetry.metrics import Telemetry
from statesvc.worker.batch_context import BatchContext
from tests.addons.mappings.test_history_reread import again
from tests.statesvc.reading.planted import CARRIER, MISREAD
from tests.world.attack import places
from tests.world.log_archivist import Archivist, shipment
from tests.world.shop import CARRIER_ID, Shop
from tests.world.shop import shipment as acme


async def test_what_was_misread_in_an_archived_month_is_corrected(
    archivist: Archivist, pool: Pool
) -> None:
    telemetry = Telemetry()
    keyring = archivist.log.keyring
    context = BatchContext(
        pool=pool,
        keyring=keyring,
        carriers={CARRIER_ID: CARRIER},
        telemetry=telemetry,
        worker="worker-1",
    )
    shop = Shop(context, archivist.connection, archivist.database, keyring)
    await set_rollout(
        shop.connection,
        CARRIER_ID,
        RolloutSettings(candidate="2", percent=100),
        why="test",
        actor="tester",
    )
    await shop.say({"number": "A1", "status": "in_transit", "code": MISREAD})
    await archivist.log.seal()
    await archivist.pass_days(70)
    await archivist.archived()
    events = f"SELECT kind FROM statesvc.event WHERE shipment_id = '{acme('A1')}' ORDER BY version"
    assert await archivist.log.rows(events) == []

    assert (await again(shop, archive=archivist.folder, dry_run=True)).corrected == 1
    report = await again(shop, archive=archivist.folder)
    assert (report.corrected, report.transitions) == (1, 1)
    assert await archivist.log.rows(events) == [("scan",), ("correction",)]
    assert (
        await shop.value("SELECT status FROM statesvc.shipment WHERE shipment_id = %s", acme("A1"))
        == "in_transit"
    )
    assert (await again(shop, archive=archivist.folder)).corrected == 0
    telemetry.close()
    await archivist.log.seal()
    assert places(archivist.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_a_subscriber_may_be_told_again_of_an_archived_month(archivist: Archivist) -> None:
    transitions = (
        "SELECT sequence, recorded_at FROM statesvc.transition WHERE shipment_id ="
        f" '{shipment('1Z0001')}' ORDER BY sequence"
    )
    before = await archivist.log.rows(transitions)
    subscription_id = uuid4()
    await archivist.as_owner(
        "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url,"
        f" sealed_secrets, shipments) VALUES ('{subscription_id}', statesvc.clock(), 'tester',"
        " 'bootstrap', 'https://x.example/', '{}', '{ups/1Z0001}')"
    )
    await archivist.archived()
    assert await archivist.log.rows(transitions) == []

    order = ReplayRequest(
        subscription_id=subscription_id,
        since=before[0][1],
        until=before[-1][1].replace(year=before[-1][1].year + 1),
        open_end=True,
        delivered_too=False,
        dry_run=False,
        actor="tester",
        run_id=uuid4(),
    )
    planned = await replay(
        archivist.connection, replace(order, dry_run=True), archive=archivist.archive
    )
    done = await replay(archivist.connection, order, archive=archivist.archive)
    assert (planned.put, done.put, done.never_written) == (len(before),) * 3
    output = (
        f"SELECT sequence FROM statesvc.notification WHERE subscription_id = '{subscription_id}'"
        " ORDER BY sequence"
    )
    assert await archivist.log.rows(output) == [(sequence,) for sequence, _ in before]
    entries = (
        f"SELECT sequence, replayed FROM statesvc.fanout WHERE '{subscription_id}' = ANY"
        " (subscriptions) ORDER BY sequence"
    )
    assert await archivist.log.rows(entries) == [(sequence, False) for sequence, _ in before], (
        "for the first time"
    )

"""Awaited numbers of which nothing is ever heard, on a real database: observed once, as an
entry and a notification.
"""

import pytest
from psycopg import AsyncConnection

from events.identity.ids import awaited_id, shipment_id
from projections.expectations import FIRST_SEQUENCE
from statesvc.addons.expectations import watcher as module
from statesvc.addons.expectations.awaited_numbers import await_number
from statesvc.addons.expectations.observe import WatchReport
from statesvc.addons.expectations.watcher import observe_never_heard
from statesvc.shipments.references import AttachedTo
from tests.addons.expectations.test_observe import HOUR, observations, subscribe
from tests.statesvc.worker.log_check import check_log
from tests.world.worker_harness import CARRIER_ID, WorkerHarness


async def awaits(harness: WorkerHarness, number: str, hours: int = 48) -> None:
    await await_number(
        harness.connection, AttachedTo(CARRIER_ID, number), hours, actor="shop", why={}
    )


async def watch(harness: WorkerHarness, *, hours: float = 0) -> WatchReport:
    await harness.database.clock.advance(hours * HOUR)
    return await observe_never_heard(harness.connection, worker="watcher")


async def test_nothing_heard_in_time_is_observed_once_as_entry_and_notification(
    harness: WorkerHarness,
) -> None:
    await subscribe(harness)
    await awaits(harness, "A1")
    assert (await watch(harness, hours=47.9)).due == 0
    report = await watch(harness, hours=0.2)
    assert (report.due, len(report.observations), report.notifications) == (1, 1, 1)
    (entry,) = await observations(harness)
    assert (entry["kind"], entry["version"], entry["shipment_id"]) == (
        "never_heard",
        0,
        str(awaited_id(CARRIER_ID, "A1")),
    )
    assert (
        entry["details"]["carrier_id"],
        entry["details"]["number"],
        entry["details"]["hours"],
    ) == (CARRIER_ID, "A1", 48)
    ((kind, number, sequence, to_status),) = await harness.rows(
        "SELECT type, tracking_number, sequence, to_status FROM statesvc.notification"
    )
    assert (kind, number, to_status) == ("shipment.never_heard", "A1", "unknown")
    assert sequence == entry["details"]["sequence"] < FIRST_SEQUENCE
    assert (await watch(harness, hours=24 * 29)).due == 0
    await check_log(harness.connection, harness.keyring)


async def test_a_number_with_a_discriminator_is_heard(harness: WorkerHarness) -> None:
    await awaits(harness, "A1")
    await harness.ingest({"number": "A1", "status": "in_transit", "discriminator": "x"})
    assert (await watch(harness, hours=49)).observations == []


async def test_a_message_that_only_names_the_number_says_nothing_of_it(
    harness: WorkerHarness,
) -> None:
    await awaits(harness, "A1")
    await harness.ingest(named=["A1"])
    assert len((await watch(harness, hours=49)).observations) == 1


async def test_a_first_message_that_is_being_appended_goes_first(harness: WorkerHarness) -> None:
    await awaits(harness, "A1")
    await harness.database.clock.advance(49 * HOUR)
    async with await AsyncConnection.connect(harness.database.service_dsn) as other:
        lock = "SELECT pg_advisory_xact_lock(uuid_hash_extended(%s, 0))"
        await other.execute(lock, (shipment_id(CARRIER_ID, "A1", ""),))
        assert (await watch(harness)).observations == []
    assert len((await watch(harness)).observations) == 1


async def test_many_are_worked_off_in_steps(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 3)
    for number in range(7):
        await awaits(harness, f"A{number}")
    await harness.database.clock.advance(49 * HOUR)
    reports = [await watch(harness) for _ in range(3)]
    assert [(len(report.observations), report.is_full) for report in reports] == [
        (3, True),
        (3, True),
        (1, False),
    ]


async def test_after_a_restore_nothing_is_concluded_before_carriers_had_time_to_push_again(
    harness: WorkerHarness,
) -> None:
    await subscribe(harness)
    await awaits(harness, "BEFORE", 1)
    assert len((await watch(harness, hours=2)).observations) == 1
    await awaits(harness, "AFTER", 1)
    await harness.connection.execute(
        "INSERT INTO statesvc.sealing_refusal (why, since) VALUES ('it went back',"
        " statesvc.clock())"
    )
    assert (await watch(harness, hours=2)).put_off == 1
    await harness.connection.execute("DELETE FROM statesvc.sealing_refusal")
    await harness.as_owner(
        "INSERT INTO statesvc.log_epoch (epoch, begins, started_at) VALUES (2, 1, statesvc.clock())"
    )
    assert (await watch(harness, hours=2)).put_off == 1
    report = await watch(harness, hours=2.1)
    assert [one.shipment.number for one in report.observations] == ["AFTER"], (
        "what is in the backup is not raised again"
    )
    told = await harness.rows(
        "SELECT tracking_number, coalesce(epoch, 1) FROM statesvc.notification ORDER BY created_at"
    )
    assert told == [("BEFORE", 1), ("AFTER", 2)]

"""Deadlines that pass and numbers that are never heard of, on a real database: observed once, as an entry, a flag and a notification."""

import asyncio
import json
from datetime import datetime
from typing import Any

import pytest
from psycopg import AsyncConnection

from events.identity.ids import awaited_id, shipment_id
from projections.expectations import FIRST_SEQUENCE
from statesvc.addons.expectations import observe as observing
from statesvc.addons.expectations import watcher as module
from statesvc.addons.expectations.awaited_numbers import await_number
from statesvc.addons.expectations.observe import WatchReport, observe
from statesvc.addons.expectations.watcher import observe_never_heard
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.references import AttachedTo
from tests.statesvc.worker.log_check import check_log
from tests.world.log_builder import MORNING
from tests.world.worker_harness import CARRIER_ID, WorkerHarness, push_body, shipment

HOUR = 3600.0


async def minute(harness: WorkerHarness, hours: float = 0) -> int:
    """Return the minute of now, as `says` counts, and some hours more."""
    now: datetime = await harness.value("SELECT statesvc.clock()")
    return int((now - MORNING).total_seconds() / 60 + hours * 60)


async def say(
    harness: WorkerHarness, number: str, status: str, *, hours: float = 0, **more: Any
) -> None:
    await harness.ingest(
        {"number": number, "status": status, "minute": await minute(harness, hours), **more}
    )


async def watch(harness: WorkerHarness, *, hours: float = 0) -> WatchReport:
    await harness.database.clock.advance(hours * HOUR)
    return await observe(harness.connection, worker="watcher")


async def flags(harness: WorkerHarness, number: str) -> list[str]:
    found: list[str] = await harness.value(
        "SELECT flags FROM statesvc.shipment WHERE shipment_id = %s", shipment(number)
    )
    return found


async def observations(harness: WorkerHarness) -> list[dict[str, Any]]:
    rows = await harness.rows(
        "SELECT canonical FROM statesvc.observation ORDER BY batch_id, ordinal"
    )
    return [json.loads(decompress_json(canonical)) for (canonical,) in rows]


async def subscribe(harness: WorkerHarness) -> None:
    await harness.connection.execute(
        "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url,"
        " sealed_secrets) VALUES (gen_random_uuid(), statesvc.clock(), 't', 't',"
        " 'http://127.0.0.1:9/', '{}')"
    )


async def test_a_silence_is_observed_once_as_entry_flag_and_notification(
    harness: WorkerHarness,
) -> None:
    await subscribe(harness)
    await say(harness, "A1", "in_transit")
    assert (await watch(harness, hours=119)).due == 0
    report = await watch(harness, hours=1.1)
    assert (report.due, len(report.observations), report.notifications) == (1, 1, 1)
    (entry,) = await observations(harness)
    assert (entry["kind"], entry["version"], entry["shipment_id"]) == (
        "stalled",
        1,
        str(shipment("A1")),
    )
    assert entry["details"] == {
        "cause": (await harness.events("A1"))[0]["event_id"],
        "hours": 120,
        "rules": 0,
        "sequence": FIRST_SEQUENCE + 1,
        "status": "in_transit",
    }
    assert await flags(harness, "A1") == ["stalled"]
    assert await harness.rows(
        "SELECT type, sequence, from_status, to_status FROM statesvc.notification ORDER BY sequence"
    ) == [
        ("shipment.stalled", FIRST_SEQUENCE + 1, "in_transit", "in_transit"),
        ("shipment.status_changed", 1, "unknown", "in_transit"),
    ]
    assert (await watch(harness, hours=2000)).due == 0


async def test_a_shipment_that_an_append_holds_is_left_for_the_next_pass(
    harness: WorkerHarness,
) -> None:
    await say(harness, "A1", "in_transit")
    await say(harness, "A2", "in_transit")
    async with harness.context.pool.connection() as other, other.transaction():
        await other.execute(
            "SELECT FROM statesvc.stream WHERE shipment_id = %s FOR NO KEY UPDATE", [shipment("A1")]
        )
        report = await watch(harness, hours=121)
        assert [one.shipment.number for one in report.observations] == ["A2"]
    assert [one.shipment.number for one in (await watch(harness)).observations] == ["A1"]


async def test_two_watchers_observe_once(harness: WorkerHarness) -> None:
    for number in range(20):
        await say(harness, f"A{number}", "in_transit")
    await harness.database.clock.advance(121 * HOUR)

    async def one() -> None:
        async with harness.context.pool.connection() as connection:
            await observe(connection, worker="watcher")

    await asyncio.gather(*(one() for _ in range(6)))
    assert len(await observations(harness)) == 20


async def test_a_pass_is_bounded(harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "AT_ONCE", 3)
    for number in range(7):
        await say(harness, f"A{number}", "in_transit")
    found = [await watch(harness, hours=121)] + [await watch(harness) for _ in range(2)]
    assert [(len(report.observations), report.is_full) for report in found] == [
        (3, True),
        (3, True),
        (1, False),
    ]


async def test_nothing_is_concluded_of_a_carrier_that_is_held(harness: WorkerHarness) -> None:
    await say(harness, "A1", "in_transit")
    await harness.rows(
        "INSERT INTO statesvc.rollout (carrier_id, hold, changed_at, changed_by) VALUES ('acme',"
        " true, now(), 't') RETURNING 1"
    )
    report = await watch(harness, hours=121)
    assert (report.put_off, report.observations) == (1, [])
    await harness.rows("UPDATE statesvc.rollout SET hold = false RETURNING 1")
    assert (await watch(harness)).due == 0
    assert len((await watch(harness, hours=2)).observations) == 1


async def test_nothing_is_concluded_while_messages_wait(harness: WorkerHarness) -> None:
    await say(harness, "A1", "in_transit")
    await harness.push(
        push_body({"number": "A1", "status": "delivered", "minute": await minute(harness, 100)})
    )
    assert (await watch(harness, hours=121)).put_off == 1
    await harness.work()
    assert (await watch(harness, hours=2)).due == 0
    assert await observations(harness) == []


async def test_a_silent_carrier_raises_no_storm(harness: WorkerHarness) -> None:
    await say(harness, "A1", "in_transit")
    await harness.database.clock.advance(95 * HOUR)
    await harness.connection.execute(
        "INSERT INTO statesvc.ack_count (carrier_id, minute, process, accepted, duplicates,"
        " refused, last_at) SELECT 'acme', date_trunc('minute', statesvc.clock()), 'w', 60, 0, 0,"
        " statesvc.clock()"
    )
    assert (await watch(harness, hours=26)).put_off == 1
    await harness.connection.execute("UPDATE statesvc.ack_count SET last_at = statesvc.clock()")
    assert len((await watch(harness, hours=2)).observations) == 1


async def awaits(harness: WorkerHarness, number: str, hours: int = 48) -> None:
    await await_number(
        harness.connection, AttachedTo(CARRIER_ID, number), hours, actor="shop", why={}
    )


async def watch_awaited(harness: WorkerHarness, *, hours: float = 0) -> WatchReport:
    await harness.database.clock.advance(hours * HOUR)
    return await observe_never_heard(harness.connection, worker="watcher")


async def test_nothing_heard_in_time_is_observed_once_as_entry_and_notification(
    harness: WorkerHarness,
) -> None:
    await subscribe(harness)
    await awaits(harness, "A1")
    assert (await watch_awaited(harness, hours=47.9)).due == 0
    report = await watch_awaited(harness, hours=0.2)
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
    assert (await watch_awaited(harness, hours=24 * 29)).due == 0
    await check_log(harness.connection, harness.keyring)


async def test_a_number_with_a_discriminator_is_heard(harness: WorkerHarness) -> None:
    await awaits(harness, "A1")
    await harness.ingest({"number": "A1", "status": "in_transit", "discriminator": "x"})
    assert (await watch_awaited(harness, hours=49)).observations == []


async def test_a_message_that_only_names_the_number_says_nothing_of_it(
    harness: WorkerHarness,
) -> None:
    await awaits(harness, "A1")
    await harness.ingest(named=["A1"])
    assert len((await watch_awaited(harness, hours=49)).observations) == 1


async def test_a_first_message_that_is_being_appended_goes_first(harness: WorkerHarness) -> None:
    await awaits(harness, "A1")
    await harness.database.clock.advance(49 * HOUR)
    async with await AsyncConnection.connect(harness.database.service_dsn) as other:
        lock = "SELECT pg_advisory_xact_lock(uuid_hash_extended(%s, 0))"
        await other.execute(lock, (shipment_id(CARRIER_ID, "A1", ""),))
        assert (await watch_awaited(harness)).observations == []
    assert len((await watch_awaited(harness)).observations) == 1


async def test_many_are_worked_off_in_steps(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 3)
    for number in range(7):
        await awaits(harness, f"A{number}")
    await harness.database.clock.advance(49 * HOUR)
    reports = [await watch_awaited(harness) for _ in range(3)]
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
    assert len((await watch_awaited(harness, hours=2)).observations) == 1
    await awaits(harness, "AFTER", 1)
    await harness.connection.execute(
        "INSERT INTO statesvc.sealing_refusal (why, since) VALUES ('it went back',"
        " statesvc.clock())"
    )
    assert (await watch_awaited(harness, hours=2)).put_off == 1
    await harness.connection.execute("DELETE FROM statesvc.sealing_refusal")
    await harness.as_owner(
        "INSERT INTO statesvc.log_epoch (epoch, begins, started_at) VALUES (2, 1, statesvc.clock())"
    )
    assert (await watch_awaited(harness, hours=2)).put_off == 1
    report = await watch_awaited(harness, hours=2.1)
    assert [one.shipment.number for one in report.observations] == ["AFTER"], (
        "what is in the backup is not raised again"
    )
    told = await harness.rows(
        "SELECT tracking_number, coalesce(epoch, 1) FROM statesvc.notification ORDER BY created_at"
    )
    assert told == [("BEFORE", 1), ("AFTER", 2)]

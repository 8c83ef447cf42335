"""Workers on the same shipments at the same time, and what another commits before the locks."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.log.event_store import lock_streams
from tests.statesvc.worker.log_check import check_log
from tests.world.worker_harness import WorkerHarness, push_body, shipment

ROUNDS = 25
STATUSES = ("picked_up", "in_transit", "exception", "out_for_delivery", "delivered")


def _push(chance: random.Random, place: int) -> bytes:
    """Build scans of three shipments; often those of another push, sometimes with a signer,
    sometimes with other facts.
    """
    scans: list[dict[str, Any]] = []
    for _ in range(chance.randint(1, 6)):
        number, minute = chance.choice("ABC"), chance.randrange(60)
        scan: dict[str, Any] = {
            "number": number,
            "minute": minute,
            "status": STATUSES[minute % 5],
            "code": f"S{minute}",
        }
        if chance.random() < 0.3:
            scan["native_id"] = f"{number}-{minute}"
            scan["city"] = chance.choice(("Springfield", "Shelbyville"))
        if chance.random() < 0.3:
            scan["signed_by"], scan["estimated_delivery"] = chance.choice("XY"), "2026-03-09"
        scans.append(scan)
    return push_body(*scans, envelope=place)


async def _work_together(*workers: WorkerHarness, limit: int) -> None:
    """Work until nothing is left, also of what one postponed because the other had locked its
    shipment.
    """

    async def work(worker: WorkerHarness) -> None:
        while await worker.value("SELECT EXISTS (SELECT FROM statesvc.inbox)"):
            if messages := await worker.claim(limit):
                await worker.process(messages)
            else:
                await asyncio.sleep(0.01)

    connections = [
        await AsyncConnection.connect(worker.database.service_dsn, autocommit=True)
        for worker in workers
    ]
    try:
        await asyncio.gather(
            *(
                work(replace(worker, connection=each))
                for worker, each in zip(workers, connections, strict=True)
            )
        )
    finally:
        for each in connections:
            await each.close()


@pytest.mark.slow
async def test_two_workers_on_the_same_shipments_end_in_one_log_without_gaps_or_doubles(
    harness: WorkerHarness,
) -> None:
    chance = random.Random(11)
    other = replace(harness, context=replace(harness.context, worker="worker-2"))
    for place in range(ROUNDS):
        for n in range(6):
            await harness.push(_push(chance, 10 * place + n))
        await _work_together(harness, other, limit=3)
    assert await harness.value("SELECT count(*) FROM statesvc.inbox") == 0
    assert await harness.value("SELECT count(*) FROM statesvc.message") == 6 * ROUNDS
    assert await check_log(harness.connection, harness.keyring) > 6 * ROUNDS
    assert {
        worker for (worker,) in await harness.rows("SELECT DISTINCT writer FROM statesvc.batch")
    } == {"worker-1", "worker-2"}
    assert (
        await harness.value(
            "SELECT count(*) - count(DISTINCT (carrier_id, event_id)) FROM statesvc.event"
        )
        == 0
    )
    assert await harness.value("SELECT count(*) FROM statesvc.conflict") > 0
    broken = """
        SELECT count(*) FROM (SELECT from_status, lag(to_status, 1, 'unknown') OVER (PARTITION BY shipment_id ORDER BY sequence) AS before
        FROM statesvc.transition) t WHERE from_status <> before"""
    assert await harness.value(broken) == 0


async def test_the_state_is_the_same_as_that_of_one_worker_which_reads_all_at_once(
    harness: WorkerHarness,
) -> None:
    other = replace(harness, context=replace(harness.context, worker="worker-2"))
    scans: list[dict[str, Any]] = [
        {
            "minute": n,
            "status": STATUSES[n % 5],
            "code": f"S{n}",
            "signed_by": "X" if n % 3 == 0 else None,
        }
        for n in range(40)
    ]
    chance = random.Random(5)
    chance.shuffle(scans)
    for n in range(0, 40, 4):
        for _ in range(2):
            await harness.push(
                push_body(
                    *({"number": "A", **scan} for scan in scans[n : n + 4]),
                    envelope=chance.randrange(10**9),
                )
            )
        await _work_together(harness, other, limit=1)
    await harness.ingest(
        *({"number": "B", **scan} for scan in sorted(scans, key=lambda scan: scan["minute"]))
    )
    state = (
        "SELECT status, reason, flags, delivered_at, attempts, status_since, last_event_at FROM"
        " statesvc.shipment WHERE shipment_id = %s"
    )
    assert await harness.rows(state, shipment("A")) == await harness.rows(state, shipment("B"))
    assert (
        await harness.value(
            "SELECT count(*) FROM statesvc.event WHERE shipment_id = %s", shipment("A")
        )
        == 40
    )


LOCK = "statesvc.append.look_up.lock_streams"
SCAN = {"number": "A", "status": "delivered", "native_id": "1"}


async def process_after_the_other(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, mine: bytes, theirs: bytes
) -> None:
    await harness.push(mine)
    await harness.push(theirs)
    (first,), other = (
        await harness.claim(1),
        replace(harness, context=replace(harness.context, worker="worker-2")),
    )
    second = await other.claim(1)

    async def locked_late(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(LOCK, lock_streams)
        await other.process(second)
        return await lock_streams(*arguments, **options)

    monkeypatch.setattr(LOCK, locked_late)
    await harness.process([first])


async def test_a_signer_is_told_once(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.ingest(SCAN)
    signed = {**SCAN, "signed_by": "X"}
    await process_after_the_other(
        harness, monkeypatch, push_body(signed, envelope=1), push_body(signed, envelope=2)
    )
    assert [event["kind"] for event in await harness.events("A")] == ["scan", "info"]


async def test_a_scan_of_a_new_shipment_is_told_once(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = {**SCAN, "signed_by": "X"}
    await process_after_the_other(
        harness, monkeypatch, push_body(signed, envelope=1), push_body(SCAN, envelope=2)
    )
    assert [event["kind"] for event in await harness.events("A")] == ["scan", "info"]


async def test_other_facts_become_a_conflict(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await process_after_the_other(
        harness, monkeypatch, push_body(SCAN), push_body({**SCAN, "city": "Shelbyville"})
    )
    assert [event["location"]["city"] for event in await harness.events("A")] == ["Shelbyville"]
    assert await harness.value("SELECT count(*) FROM statesvc.conflict") == 1

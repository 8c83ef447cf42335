"""Workers on the same shipments at the same time, and what another commits before the locks."""

import asyncio
import io
import json
import random
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from events.crypto.keyring import body_context, body_key_wrap, part_context
from events.crypto.sealing import SealError, SealingKey, commitment, unsalted
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


SIGNER, TEXT, ADDRESS = (
    "Zaphod Beeblebrox",
    "Left with the neighbour Trillian",
    "42 Heart of Gold Lane",
)
DELIVERED = {
    "number": "A1",
    "status": "delivered",
    "code": "DL",
    "signed_by": SIGNER,
    "description": TEXT,
    "delivery_address": ADDRESS,
}


async def test_recorded_at_grows_even_where_the_clock_stands_still(harness: WorkerHarness) -> None:
    await harness.as_owner(
        "CREATE OR REPLACE FUNCTION statesvc.clock() RETURNS timestamptz LANGUAGE sql RETURN"
        " date_trunc('hour', now())"
    )
    await harness.push(push_body({"number": "A1", "status": "picked_up"}))
    await harness.work()
    await harness.ingest(
        *({"number": "A1", "status": "in_transit", "minute": n} for n in range(1, 5))
    )
    assert await check_log(harness.connection, harness.keyring) == 7


async def _unwrapped(harness: WorkerHarness, message_id: UUID) -> bytes:
    """Return the body, through the keys of the shipments that its message names."""
    ((shipments, sealed_key),) = await harness.rows(
        "SELECT shipments, sealed_key FROM statesvc.message WHERE message_id = %s", message_id
    )
    key = body_key_wrap(await _keys(harness, shipments), message_id).unwrap(
        sealed_key, body_context(message_id)
    )
    ((sealed_body, committed),) = await harness.rows(
        "SELECT sealed, commitment FROM statesvc.body WHERE message_id = %s", message_id
    )
    content = key.open(sealed_body, body_context(message_id))
    assert commitment(content) == committed
    return unsalted(content)


async def _keys(harness: WorkerHarness, shipments: list[UUID]) -> dict[UUID, SealingKey]:
    return {
        shipment_id: harness.keyring.open_shipment_key(
            await harness.value(
                "SELECT sealed_key FROM statesvc.stream WHERE shipment_id = %s", shipment_id
            ),
            shipment_id,
        )
        for shipment_id in shipments
    }


@pytest.mark.parametrize("numbers", [("A1",), ("A1", "B1", "C1")])
async def test_the_body_opens_with_the_keys_of_all_its_shipments_and_with_nothing_less(
    harness: WorkerHarness, numbers: tuple[str, ...]
) -> None:
    body = push_body(*({"number": number, "status": "in_transit"} for number in numbers))
    (message_id,) = await harness.push(body)
    await harness.work()
    assert await _unwrapped(harness, message_id) == body
    again = push_body(
        *({"number": number, "status": "in_transit"} for number in numbers), envelope=1
    )
    (repeated,) = await harness.push(again)
    await harness.work()
    assert await _unwrapped(harness, repeated) == again

    ((shipments, sealed_key),) = await harness.rows(
        "SELECT shipments, sealed_key FROM statesvc.message WHERE message_id = %s", message_id
    )
    assert shipments == sorted(map(shipment, numbers))
    with pytest.raises(SealError):
        harness.keyring.inbox.open(sealed_key, body_context(message_id))
    keys = await _keys(harness, shipments)
    for shipment_id, key in keys.items():
        others = {other: keys[other] for other in keys if other != shipment_id}
        for less in (
            key,
            body_key_wrap(others, message_id),
            body_key_wrap({shipment_id: key, UUID(int=0): key}, message_id),
        ):
            with pytest.raises(SealError):
                less.unwrap(sealed_key, body_context(message_id))


async def test_a_message_about_no_shipment_keeps_its_key_under_the_inbox_key(
    harness: WorkerHarness,
) -> None:
    message_id = await harness.ingest()
    sealed_key = await harness.value("SELECT sealed_key FROM statesvc.message")
    assert harness.keyring.inbox.unwrap(sealed_key, body_context(message_id))


async def test_the_personal_part_opens_with_the_shipments_key(harness: WorkerHarness) -> None:
    await harness.ingest(DELIVERED)
    ((event_id, sealed_part),) = await harness.rows(
        "SELECT event_id, sealed_part FROM statesvc.event"
    )
    key = harness.keyring.open_shipment_key(
        await harness.value("SELECT sealed_key FROM statesvc.stream"), shipment("A1")
    )
    part = json.loads(unsalted(key.open(sealed_part, part_context(shipment("A1"), event_id))))
    assert part == {"description": TEXT, "signed_by": SIGNER, "delivery_address": ADDRESS}


async def _tables_that_tell(harness: WorkerHarness, *secrets: str) -> set[str]:
    tables = await harness.rows(
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'statesvc' AND c.relkind = 'r' AND has_table_privilege(c.oid, 'SELECT')"
    )
    tables += [
        (f"statesvc.{name}",)
        for name in (
            "event",
            "conflict",
            "transition",
            "batch",
            "body",
            "message",
            "attempt",
            "action",
        )
    ]
    spelled = [
        *secrets,
        *(secret.upper() for secret in secrets),
        *(secret.encode().hex() for secret in secrets),
    ]
    asked = "SELECT EXISTS (SELECT FROM {} t WHERE t::text LIKE ANY (%s))"
    return {
        table
        for (table,) in tables
        if await harness.value(asked.format(table), [f"%{text}%" for text in spelled])
    }


async def test_no_table_and_no_log_line_holds_a_name_a_text_or_an_address_in_clear(
    harness: WorkerHarness, log: io.StringIO
) -> None:
    await harness.push(
        push_body(DELIVERED), b"unreadable " + SIGNER.encode(), b"defect " + TEXT.encode()
    )
    assert await _tables_that_tell(harness, SIGNER, TEXT, ADDRESS) == set()
    await harness.work()
    await harness.ingest(
        {**DELIVERED, "number": "B1", "code": None, "kind": "unmapped", "status": None}
    )
    await harness.ingest(
        {**DELIVERED, "number": "C1", "native_id": "n1"},
        {**DELIVERED, "number": "C1", "native_id": "n1", "code": "DX"},
    )
    await harness.ingest({**DELIVERED, "number": "D1", "signed_by": None}, rejected=1)
    await harness.ingest({**DELIVERED, "number": "D1"})
    assert await harness.value("SELECT count(*) FROM statesvc.conflict") == 1
    assert await _tables_that_tell(harness, SIGNER, TEXT, ADDRESS) == set()
    assert await _tables_that_tell(harness, "unreadable"), "the look finds what is there"
    assert not any(secret in log.getvalue() for secret in (SIGNER, TEXT, ADDRESS))

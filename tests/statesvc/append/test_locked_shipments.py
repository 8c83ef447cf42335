"""A shipment that another transaction has locked holds up its own messages, and nobody else's."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from events.entry.assemble import StreamHead
from events.vocabulary import Verdict
from statesvc.api.submission.submit import Submitted, submit
from statesvc.append.append_batch import AppendBatch, WhenLocked
from statesvc.append.transaction import append
from statesvc.cli.doctor.checks import check_locked
from statesvc.log.event_store import NEW_STREAMS_MAX, move_heads
from statesvc.reading.read_message import Read
from statesvc.worker.batch import process_locked
from statesvc.worker.versions import read_chosen
from tests.statesvc.worker.log_check import check_log
from tests.world.worker_harness import ACME, WorkerHarness, push_body, shipment

pytestmark = pytest.mark.slow

OTHER_CARRIER = "bravo"
LEFT = "SELECT count(*) FROM statesvc.inbox"
# in its long wait: the first try holds the locks it got for 20 ms and gives them back
IN_LINE = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type ="
    " 'Lock' AND query ~ 'statesvc.stream' AND clock_timestamp() - query_start > '0.1 s'"
)


def _scan(number: str, code: str = "AR", **more: Any) -> bytes:
    return push_body({"number": number, "status": "in_transit", "code": code, **more})


@asynccontextmanager
async def holding(harness: WorkerHarness, *numbers: str) -> AsyncIterator[AsyncConnection[Any]]:
    """Lock these shipments in another transaction."""
    async with await AsyncConnection.connect(harness.database.service_dsn) as connection:
        for number in numbers:
            await connection.execute(
                "SELECT FROM statesvc.stream WHERE shipment_id = %s FOR UPDATE", (shipment(number),)
            )
        yield connection


@asynccontextmanager
async def workers(harness: WorkerHarness, count: int = 1, **limits: Any) -> AsyncIterator[None]:
    """Run workers that nothing but their own sweeps wakes."""
    async with AsyncExitStack() as running:
        for place in range(count):
            named = replace(harness, context=replace(harness.context, worker=f"worker-{place}"))
            await running.enter_async_context(
                named.worker(seconds=120, sweep_seconds_without_listener=0.05, **limits)
            )
        yield


@pytest.fixture
def two_carriers(harness: WorkerHarness) -> WorkerHarness:
    carriers = {**harness.context.carriers, OTHER_CARRIER: replace(ACME, carrier_id=OTHER_CARRIER)}
    harness.context = replace(harness.context, carriers=carriers)
    return harness


async def test_while_a_shipment_is_locked_everything_else_is_settled(
    two_carriers: WorkerHarness,
) -> None:
    harness = two_carriers
    await harness.ingest({"number": "LOCKED", "status": "picked_up"})
    async with holding(harness, "LOCKED") as holder:
        for n in range(40):
            await harness.push(_scan(f"N{n}"), _scan("LOCKED", f"C{n}"))
        await harness.push(*(_scan(f"B{n}") for n in range(19)), carrier_id=OTHER_CARRIER)
        async with workers(harness):
            # the lock outlives the test's patience: what waits for it is never settled
            await harness.until(LEFT, 40)
            assert (
                await harness.value("SELECT count(*) FROM statesvc.inbox WHERE retries > 0") == 0
            ), "uncharged"
            await harness.until("SELECT count(*) FROM statesvc.inbox WHERE postponed < 3", 0)
            waiting = [
                each
                async for each in check_locked(harness.connection)
                if each.about == "locked shipments"
            ]
            assert (
                "40 of acme wait for a shipment that another transaction has locked"
                in waiting[0].text
            )
            assert f"pid {holder.info.backend_pid}" in waiting[0].text
            assert (
                'statesvc_messages_postponed_total{carrier="acme"}'
                in harness.context.telemetry.exposition().decode()
            )
            await harness.push(*(_scan(f"LATE{n}") for n in range(20)))
            # the reserved slot waits for the lock now, and the other ones go on
            await harness.until(LEFT, 40)
    async with workers(harness):
        await harness.until(LEFT, 0)
    assert (
        await harness.value(
            "SELECT count(*) FROM statesvc.event WHERE shipment_id = %s", shipment("LOCKED")
        )
        == 41
    )
    assert await harness.value("SELECT max(attempts) FROM statesvc.message") == 1
    await check_log(harness.connection, harness.keyring)


async def test_a_batch_applies_what_is_not_locked_and_gives_back_whole_messages(
    harness: WorkerHarness,
) -> None:
    await harness.ingest({"number": "A", "status": "picked_up"})
    async with holding(harness, "A"):
        for body in (
            _scan("B"),
            push_body(
                {"number": "C", "status": "in_transit"},
                {"number": "A", "status": "in_transit", "code": "A2"},
            ),
            push_body({"number": "C", "status": "delivered", "minute": 9}),
            _scan("D"),
        ):
            await harness.push(body)
        async with asyncio.timeout(2):
            assert await harness.process(await harness.claim()) == 2
        assert await harness.value(LEFT) == 2
        assert (
            await harness.rows("SELECT token, attempts, retries, postponed FROM statesvc.inbox")
            == [(None, 0, 0, 1)] * 2
        )
        assert await harness.value("SELECT count(*) FROM statesvc.stream") == 3, (
            "of C nothing is written: its first message goes back too"
        )
    await harness.until(
        "SELECT bool_and(available_at <= statesvc.clock()) FROM statesvc.inbox", True
    )
    assert await harness.work() == 3
    assert [event["status"] for event in await harness.events("C")] == ["in_transit", "delivered"]
    await check_log(harness.connection, harness.keyring)


async def test_a_message_whose_turn_never_came_waits_in_line(harness: WorkerHarness) -> None:
    # a transaction of others holds the shipment whenever somebody tries; the second time one
    # waits until it lets go
    await harness.ingest({"number": "A", "status": "picked_up"})
    async with holding(harness, "A") as holder:
        await harness.push(_scan("A"))
        async with workers(harness, lease_seconds=120):
            await harness.until(IN_LINE, 1)
            assert await harness.value("SELECT postponed FROM statesvc.inbox") == 1
            await holder.commit()
            await harness.until(LEFT, 0)


async def test_what_waited_for_a_shipment_shares_a_transaction(harness: WorkerHarness) -> None:
    """Else each in turn would hold the lock, and what comes meanwhile would be postponed."""
    await harness.ingest({"number": "A", "status": "picked_up"})
    await harness.ingest({"number": "B", "status": "picked_up"})
    async with holding(harness, "A") as holder:
        await harness.push(*(_scan("A", f"C{n}") for n in range(5)), _scan("B"))
        async with workers(harness, lease_seconds=120):
            await harness.until(IN_LINE, 1)
            await holder.commit()
            await harness.until(LEFT, 0)
    batches = (
        "SELECT array_agg(n ORDER BY n) FROM (SELECT count(*) AS n FROM statesvc.event WHERE"
        " shipment_id = %s GROUP BY batch_id) b"
    )
    assert await harness.value(batches, shipment("A")) == [1, 5]
    await check_log(harness.connection, harness.keyring)


async def test_a_new_shipment_that_another_is_making_is_not_waited_for(
    harness: WorkerHarness,
) -> None:
    async with await AsyncConnection.connect(harness.database.service_dsn) as other:
        await other.execute(
            "SELECT pg_advisory_xact_lock(uuid_hash_extended(%s, 0))", (shipment("NEW"),)
        )
        await other.execute(
            "INSERT INTO statesvc.stream SELECT %s, 'acme', 'NEW', '', 0, sha256(''), 'epoch',"
            " 'epoch', '\\x00'",
            (shipment("NEW"),),
        )
        await harness.push(_scan("NEW"), _scan("B"))
        async with asyncio.timeout(2):
            assert await harness.process(await harness.claim()) == 1
        assert await harness.value(LEFT) == 1
        await other.rollback()
    await harness.until(
        "SELECT bool_and(available_at <= statesvc.clock()) FROM statesvc.inbox", True
    )
    assert await harness.work() == 1


async def test_a_number_that_another_names_is_not_waited_for(harness: WorkerHarness) -> None:
    # its stream with nothing but a key is there and locked, or being made by a
    # transaction that is not committed
    await harness.push(push_body(named=["THERE"]))
    await harness.work()
    async with holding(harness, "THERE") as other:
        await other.execute(
            "SELECT pg_advisory_xact_lock(uuid_hash_extended(%s, 0))", (shipment("NEW"),)
        )
        await other.execute(
            "INSERT INTO statesvc.stream SELECT %s, 'acme', 'NEW', '', 0, sha256(''), 'epoch',"
            " 'epoch', '\\x00'",
            (shipment("NEW"),),
        )
        await harness.push(
            push_body(named=["THERE"], envelope=1), push_body(named=["NEW", "FREE"]), _scan("B")
        )
        # of one push no message is the earlier one
        await harness.push(_scan("FREE"))
        async with asyncio.timeout(2):
            assert await harness.process(await harness.claim()) == 1
        # the scan of a number that an earlier message names waits with it
        assert await harness.value(LEFT) == 3
        assert (
            await harness.rows("SELECT attempts, retries, postponed FROM statesvc.inbox")
            == [(0, 0, 1)] * 3
        )
        await other.rollback()
    await harness.until(
        "SELECT bool_and(available_at <= statesvc.clock()) FROM statesvc.inbox", True
    )
    assert await harness.work() == 1
    assert await harness.value(LEFT) == 0
    await check_log(harness.connection, harness.keyring)


async def test_two_that_make_what_the_other_names_do_not_wait_for_each_other(
    harness: WorkerHarness,
) -> None:
    # each makes one shipment and names the one that the other makes: with a wait on both sides the
    # server had to end one of them
    def batch(connection: AsyncConnection[Any], message: Any) -> AppendBatch:
        read, _ = read_chosen(
            message,
            keyring=harness.keyring,
            carriers=harness.context.carriers,
            mappings=harness.context.mappings,
        )
        assert isinstance(read, Read)
        return AppendBatch(connection, harness.keyring, [read], "x", WhenLocked.POSTPONE)

    await harness.push(
        push_body({"number": "X", "status": "picked_up"}, named=["Z"]),
        push_body({"number": "Z", "status": "picked_up"}, named=["X"]),
    )
    one, other = await harness.claim()
    dsn = harness.database.service_dsn
    async with (
        await AsyncConnection.connect(dsn) as mine,
        await AsyncConnection.connect(dsn) as theirs,
    ):
        async with asyncio.timeout(2):
            applied = await append(batch(mine, one))
            postponed = await append(batch(theirs, other))
        assert (len(applied.events), applied.postponed) == (1, [])
        assert (len(postponed.events), len(postponed.postponed)) == (0, 1)


async def test_what_depends_on_a_postponed_message_is_postponed_with_it(
    harness: WorkerHarness,
) -> None:
    # the second names another shipment, but has the id of the first: which of them is the conflict
    # must not depend on a lock
    await harness.ingest({"number": "A", "status": "picked_up"})
    async with holding(harness, "A"):
        for number, native_id in (("A", "1"), ("B", "1"), ("C", "2")):
            await harness.push(_scan(number, native_id=native_id))
        assert await harness.process(await harness.claim()) == 1
        assert await harness.value("SELECT count(*) FROM statesvc.inbox WHERE postponed = 1") == 2
    await harness.until(
        "SELECT bool_and(available_at <= statesvc.clock()) FROM statesvc.inbox", True
    )
    assert await harness.work() == 1
    assert await harness.rows("SELECT shipment_id, claimed_shipment_id FROM statesvc.conflict") == [
        (shipment("A"), shipment("B"))
    ]
    await check_log(harness.connection, harness.keyring)


async def test_who_waits_for_one_shipment_of_a_message_holds_none_of_its_others(
    harness: WorkerHarness,
) -> None:
    for number in ("A", "B"):
        await harness.ingest({"number": number, "status": "picked_up"})
    async with holding(harness, "B") as holder:
        await harness.push(
            push_body(
                *({"number": number, "status": "in_transit", "code": "AR"} for number in ("A", "B"))
            )
        )
        waiting = asyncio.create_task(
            process_locked(
                harness.context,
                await harness.claim(),
                lease_ends=time.monotonic() + 60,
                wait_seconds=30,
            ),
        )
        await harness.until(IN_LINE, 1)
        await harness.push(_scan("A", "MEANWHILE"))
        assert await harness.process(await harness.claim()) == 1
        await holder.commit()
    assert await waiting == 1, "B moved; A is there since the scan that came meanwhile"
    await check_log(harness.connection, harness.keyring)


async def test_a_submission_waits_for_a_shipment_that_a_worker_holds(
    harness: WorkerHarness,
) -> None:
    await harness.ingest({"number": "A", "status": "picked_up"})
    await harness.push(_scan("A"))
    (message,) = await harness.claim()
    read, _ = read_chosen(
        message,
        keyring=harness.keyring,
        carriers=harness.context.carriers,
        mappings=harness.context.mappings,
    )
    assert isinstance(read, Read)
    async with holding(harness, "A") as holder:
        submitting = asyncio.create_task(
            submit(
                harness.context.pool,
                harness.keyring,
                read.events,
                body=b"[]",
                writer="x",
                archive=harness.context.archive,
            )
        )
        await harness.until(IN_LINE, 1)
        await holder.commit()
    submitted = await submitting
    assert isinstance(submitted, Submitted)
    assert submitted.verdicts == (Verdict.APPENDED,)


async def test_a_dedupe_key_that_another_holds_is_found_by_halving(harness: WorkerHarness) -> None:
    async with await AsyncConnection.connect(harness.database.service_dsn) as other:
        await other.execute(
            "INSERT INTO statesvc.event_key (carrier_id, event_id, shipment_id, facts_digest,"
            " attribute_digests) VALUES ('acme', 'native-1', %s, '', '')",
            (shipment("ELSEWHERE"),),
        )
        await harness.push(*(_scan(f"N{n}") for n in range(7)), _scan("N7", native_id="native-1"))
        await harness.process(await harness.claim())
        assert await harness.rows("SELECT attempts, retries, postponed FROM statesvc.inbox") == [
            (0, 0, 1)
        ]
        await other.rollback()
    await harness.until(
        "SELECT bool_and(available_at <= statesvc.clock()) FROM statesvc.inbox", True
    )
    assert await harness.work() == 1


async def test_a_head_that_moved_all_the_same_ends_the_transaction(harness: WorkerHarness) -> None:
    # the lock is what guards it; that it did is asserted
    await harness.ingest({"number": "A", "status": "picked_up"})
    ((head_hash, recorded_at),) = await harness.rows(
        "SELECT head_hash, recorded_at FROM statesvc.stream"
    )
    head = StreamHead(2, head_hash, recorded_at, recorded_at, None, seen=0)
    with pytest.raises(psycopg.DatabaseError) as caught:
        await move_heads(harness.connection, {shipment("A"): head})
    assert caught.value.sqlstate == "SS005"
    assert await harness.value("SELECT version FROM statesvc.stream") == 1


async def test_more_new_shipments_than_one_transaction_may_make_are_made_by_several(
    harness: WorkerHarness,
) -> None:
    sizes = (NEW_STREAMS_MAX // 2 + 1, NEW_STREAMS_MAX // 2 + 1, NEW_STREAMS_MAX + 1)
    for message, size in enumerate(sizes):
        await harness.push(
            push_body(*({"number": f"M{message}N{n}", "status": "in_transit"} for n in range(size)))
        )
    async with workers(harness):
        await harness.until(LEFT, 0, seconds=60)
    assert await harness.value("SELECT count(*) FROM statesvc.stream") == sum(sizes)
    await check_log(harness.connection, harness.keyring)


async def test_several_writers_around_a_frozen_shipment_never_deadlock(
    harness: WorkerHarness,
) -> None:
    chance = random.Random(3)
    numbers = [f"N{n}" for n in range(24)]
    for number in numbers:
        await harness.ingest({"number": number, "status": "picked_up"})
    pushes = [chance.sample(numbers, 2) for _ in range(160)]
    naming = sum("N5" in named for named in pushes)
    async with holding(harness, "N5") as holder:
        for n, named in enumerate(pushes):
            await harness.push(
                push_body(
                    *(
                        {"number": each, "status": "in_transit", "minute": n % 60, "code": f"S{n}"}
                        for each in named
                    )
                )
            )
        async with workers(harness, 4, batch_min=8, batch_max=16):
            await harness.until(LEFT, naming, seconds=60)
            await holder.rollback()
            await harness.until(LEFT, 0, seconds=60)
    assert await harness.value("SELECT count(*) FROM statesvc.message WHERE attempts > 1") == 0
    assert await harness.value("SELECT count(*) FROM statesvc.dead_letter") == 0
    assert (
        await harness.value(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        )
        == 0
    )
    await check_log(harness.connection, harness.keyring)

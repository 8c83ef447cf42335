"""Leases of a worker, the size of its claims, and suspects that it works on alone."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest

from statesvc.queue.claim import Message
from statesvc.worker import worker_loop as loop
from statesvc.worker.batch import process, transaction_groups
from statesvc.worker.batch_context import BatchContext
from statesvc.worker.batch_size import BATCH_SECONDS, BatchSize, split_by_volume
from statesvc.worker.lease import (
    EXTENSIONS_MAX,
    RESCUE_SECONDS,
    LeaseLostError,
    RescueShare,
    under_lease,
)
from tests.world.worker_harness import WorkerHarness, push_body

LEASE_SECONDS = 0.04


class Lease:
    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def extend(self) -> int:
        self.asked += 1
        answer = self.answers.pop(0) if self.answers else 1
        if isinstance(answer, Exception):
            raise answer
        return answer


async def _worth(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


async def test_slow_work_extends_its_lease_every_half_of_it_also_after_an_extension_that_failed() -> (
    None
):
    lease = Lease(1, OSError(), 1)
    assert (
        await under_lease(
            _worth(LEASE_SECONDS * 2.2), extend=lease.extend, lease_seconds=LEASE_SECONDS
        )
        == "done"
    )
    assert 3 <= lease.asked < EXTENSIONS_MAX


async def test_work_that_hangs_keeps_its_lease_for_a_bounded_time_only() -> None:
    lease = Lease()
    assert (
        await under_lease(
            _worth(LEASE_SECONDS * 4),
            extend=lease.extend,
            lease_seconds=LEASE_SECONDS,
            extensions_max=2,
        )
        == "done"
    )
    assert lease.asked == 2


async def _hangs(stopped: asyncio.Event) -> None:
    try:
        await asyncio.sleep(10)
    finally:
        stopped.set()


async def test_a_lost_lease_stops_the_work() -> None:
    lease, stopped = Lease(1, 0), asyncio.Event()
    with pytest.raises(LeaseLostError):
        await under_lease(_hangs(stopped), extend=lease.extend, lease_seconds=LEASE_SECONDS)
    assert stopped.is_set()


async def test_a_cancelled_batch_takes_its_work_along() -> None:
    stopped = asyncio.Event()
    task = asyncio.create_task(
        under_lease(_hangs(stopped), extend=Lease().extend, lease_seconds=10)
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


def test_take_overs_and_lanes_share_the_time() -> None:
    rescues = RescueShare()
    now = 100.0
    rescued = 0.0
    while rescues.rescue_first(now):
        rescues.rescued(began=now, ended=now + 0.01)
        now, rescued = now + 0.01, rescued + 0.01
    assert rescued == pytest.approx(RESCUE_SECONDS, abs=0.011)
    assert not rescues.rescue_first(now + rescued - 0.02)
    assert rescues.rescue_first(now + rescued + 0.02)


def test_take_overs_apart_from_each_other_owe_the_lanes_nothing() -> None:
    rescues = RescueShare()
    for second in range(100):
        assert rescues.rescue_first(second)
        rescues.rescued(began=second, ended=second + 0.01)
        rescues.lanes_served()


ONE = Message(
    message_id=uuid4(),
    carrier_id="",
    token=uuid4(),
    attempts=1,
    retries=0,
    received_at=datetime.now(UTC),
    stage="raw",
    candidate=None,
    percent=0,
    shadow=False,
    sealed_key=b"",
    commitment=b"",
    sealed=b"",
)


def claimed(**counts: int) -> list[Message]:
    return [
        replace(ONE, message_id=uuid4(), carrier_id=carrier_id)
        for carrier_id, count in counts.items()
        for _ in range(count)
    ]


def test_a_quiet_carrier_goes_ahead_of_a_busy_one() -> None:
    quiet, rest = split_by_volume(claimed(ups=60, gls=1, dpd=3))
    assert {message.carrier_id for message in quiet} == {"gls", "dpd"}
    assert len(rest) == 60


def test_where_all_are_alike_nobody_goes_ahead() -> None:
    for messages in (claimed(ups=64), claimed(ups=30, gls=34), claimed(ups=2, gls=1)):
        assert split_by_volume(messages) == [messages]
    assert split_by_volume([]) == []


def test_a_message_that_was_given_back_twice_has_a_transaction_of_its_own() -> None:
    one, twice, never = (Mock(message_id=uuid4(), events=()) for _ in range(3))
    retries = {one.message_id: 1, twice.message_id: 2, never.message_id: 0}
    assert [*transaction_groups([one, twice, never], retries)] == [[one, never], [twice]]


def test_batches_grow_with_the_backlog_and_shrink_with_it() -> None:
    size = BatchSize(least=64, most=512)
    sizes = []
    for messages in (64, 128, 256, 512, 512, 40, 40, 3):
        size.claimed(messages)
        sizes.append(size.size)
    assert sizes == [128, 256, 512, 512, 512, 256, 128, 64]


def test_a_batch_takes_the_loop_for_its_time_and_no_longer_whatever_a_message_costs() -> None:
    size = BatchSize(least=64, most=512)
    for _ in range(20):
        size.worked(size.size, loop_seconds=size.size * 400e-6)
        size.claimed(size.size)
    assert size.size == round(BATCH_SECONDS / 400e-6)
    for _ in range(20):
        # histories of ten scans each
        size.worked(size.size, loop_seconds=size.size * 1e-3)
        size.claimed(size.size)
    assert size.size == round(BATCH_SECONDS / 1e-3)
    for _ in range(20):
        size.worked(size.size, loop_seconds=size.size * 1.0)
        size.claimed(size.size)
    assert size.size == 16, "not one by one: a transaction has its own cost"


def test_a_batch_of_a_few_says_nothing_about_the_cost_of_a_message() -> None:
    size = BatchSize(least=64, most=512)
    size.worked(1, loop_seconds=1.0)
    assert size.bound == 512


async def test_nothing_is_in_progress_beside_a_suspect(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspects = set(
        await harness.push(
            *(push_body({"number": f"S{n}", "status": "in_transit"}) for n in range(3))
        )
    )
    assert len(await harness.claim()) == 3
    await harness.database.clock.advance(31)
    in_progress: list[set[Any]] = []
    beside: list[int] = []

    async def watched(
        context: BatchContext, messages: Sequence[Message], *, lease_ends: float
    ) -> int:
        mine = {message.message_id for message in messages}
        in_progress.append(mine)
        if mine & suspects:
            # as long as a claim takes and longer
            await asyncio.sleep(0.1)
            beside.append(len(in_progress) - 1)
        try:
            return await process(context, messages, lease_ends=lease_ends)
        finally:
            in_progress.remove(mine)

    monkeypatch.setattr(loop, "process", watched)
    await harness.push(*(push_body({"number": f"N{n}", "status": "in_transit"}) for n in range(20)))
    async with harness.worker(batch_min=4, batch_max=4):
        await harness.until("SELECT count(*) FROM statesvc.message", 23)
    assert beside == [0, 0, 0]


async def test_attempts_are_counted_by_their_number(harness: WorkerHarness) -> None:
    await harness.push(*(push_body({"number": f"N{n}", "status": "in_transit"}) for n in range(3)))
    assert len(await harness.claim()) == 3
    await harness.database.clock.advance(31)
    for _ in range(3):
        await harness.process(await harness.claim())
    await harness.push(push_body({"number": "NEW", "status": "in_transit"}))
    await harness.process(await harness.claim())
    told = harness.context.telemetry.exposition().decode()
    assert 'statesvc_messages_attempts_total{attempt="2",carrier="acme"} 3.0' in told
    assert 'statesvc_messages_attempts_total{attempt="1",carrier="acme"} 1.0' in told


async def test_what_a_claim_buries_is_counted(harness: WorkerHarness) -> None:
    await harness.push(push_body({"number": "S", "status": "in_transit"}))
    for _ in range(5):
        assert len(await harness.claim()) == 1
        await harness.database.clock.advance(31)
    async with harness.worker():
        await harness.until(
            "SELECT count(*) FROM statesvc.dead_letter WHERE cause = 'worker_died'", 1
        )
    told = harness.context.telemetry.exposition().decode()
    assert 'statesvc_messages_buried_total{carrier="acme",cause="worker_died"} 1.0' in told

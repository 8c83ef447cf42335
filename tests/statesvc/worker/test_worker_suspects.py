"""A message whose worker died is worked on while nothing else is: if it kills again,
it charges nobody else.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from statesvc.queue.claim import Message
from statesvc.worker import worker_loop as loop
from statesvc.worker.batch import process
from statesvc.worker.batch_context import BatchContext
from tests.world.worker_harness import WorkerHarness, push_body


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

"""A message whose worker died is worked on while nothing else is: if it kills again,
it charges nobody else.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.database.wakeups.wakeup import INBOX
from statesvc.queue.claim import Message
from statesvc.worker import worker_loop as loop
from statesvc.worker.batch import process
from statesvc.worker.batch_context import BatchContext
from statesvc.worker.worker_loop import Worker, WorkerLimits
from tests.world.shop import Shop, says


async def test_nothing_is_in_progress_beside_a_suspect(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspects = set(
        await shop.push(*(says({"number": f"S{n}", "status": "in_transit"}) for n in range(3)))
    )
    assert len(await shop.claim()) == 3
    await shop.database.clock.advance(31)
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
    await shop.push(*(says({"number": f"N{n}", "status": "in_transit"}) for n in range(20)))
    listener, waker = Listener(shop.database.service_dsn, [INBOX]), Waker(shop.database.service_dsn)
    worker = Worker(
        shop.context,
        listener=listener,
        woken=listener.event(INBOX),
        waker=waker,
        limits=WorkerLimits(batch_min=4, batch_max=4),
    )
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(20):
        await shop.until("SELECT count(*) FROM statesvc.message", 23)
        worker.stop()
        await running
    assert beside == [0, 0, 0]


async def test_attempts_are_counted_by_their_number(shop: Shop) -> None:
    await shop.push(*(says({"number": f"N{n}", "status": "in_transit"}) for n in range(3)))
    assert len(await shop.claim()) == 3
    await shop.database.clock.advance(31)
    for _ in range(3):
        await shop.process(await shop.claim())
    await shop.push(says({"number": "NEW", "status": "in_transit"}))
    await shop.process(await shop.claim())
    told = shop.context.telemetry.exposition().decode()
    assert 'statesvc_messages_attempts_total{attempt="2",carrier="acme"} 3.0' in told
    assert 'statesvc_messages_attempts_total{attempt="1",carrier="acme"} 1.0' in told


async def test_what_a_claim_buries_is_counted(shop: Shop) -> None:
    await shop.push(says({"number": "S", "status": "in_transit"}))
    for _ in range(5):
        assert len(await shop.claim()) == 1
        await shop.database.clock.advance(31)
    listener, waker = Listener(shop.database.service_dsn, [INBOX]), Waker(shop.database.service_dsn)
    worker = Worker(
        shop.context,
        listener=listener,
        woken=listener.event(INBOX),
        waker=waker,
        limits=WorkerLimits(),
    )
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(20):
        await shop.until("SELECT count(*) FROM statesvc.dead_letter WHERE cause = 'worker_died'", 1)
        worker.stop()
        await running
    told = shop.context.telemetry.exposition().decode()
    assert 'statesvc_messages_buried_total{carrier="acme",cause="worker_died"} 1.0' in told

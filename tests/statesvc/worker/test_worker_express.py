"""The look-out of a worker that has a flood in hand claims what others send at once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.database.pool import make_pool
from statesvc.database.wakeups.channels import INBOX
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.inbox.claim import Claim, Claimed, Message, claim
from statesvc.worker import worker_loop as loop
from statesvc.worker.batch import Workshop, process
from statesvc.worker.express import LOOKS_AT_ONCE, LOOKS_PER_SECOND, Looks
from statesvc.worker.lookout import Lookout
from statesvc.worker.worker_loop import Pace, Worker
from tests.statesvc.worker.shop import ACME, LIMITS, Shop, says

QUIET = replace(ACME, carrier_id="quiet")
SLOTS = 3


@dataclass
class Stuck:
    """A worker whose batches of the flood stop before their work until `go`."""

    shop: Shop
    waker: Waker
    go: asyncio.Event = field(default_factory=asyncio.Event)
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: list[int] = field(default_factory=list)

    async def push_quietly(self, count: int = 1, *, named: str | None = "quiet") -> None:
        await self.shop.push(*(says({"number": f"Q{n}", "status": "in_transit"}) for n in range(count)), carrier_id="quiet")
        self.waker.wake(INBOX, named)

    async def settled(self, carrier_id: str) -> int:
        return int(await self.shop.value("SELECT count(*) FROM statesvc.message WHERE carrier_id = %s", carrier_id))

    async def claims(self) -> float:
        told = self.shop.workshop.telemetry.exposition().decode().splitlines()
        return sum(float(line.split()[-1]) for line in told if line.startswith("statesvc_queue_claims_total{"))


@asynccontextmanager
async def stuck(shop: Shop, monkeypatch: pytest.MonkeyPatch, *, flood: int = 200, slots: int = SLOTS) -> AsyncIterator[Stuck]:
    """All slots are taken when the block begins."""
    shop = replace(shop, workshop=replace(shop.workshop, carriers={**shop.workshop.carriers, "quiet": QUIET}))
    listener, waker = Listener(shop.database.service_dsn, [INBOX]), Waker(shop.database.service_dsn, interval_seconds=0.001)
    await listener.start()
    await waker.start()
    scene = Stuck(shop, waker)

    async def waits(workshop: Workshop, messages: Sequence[Message], *, lease_ends: float) -> int:
        if messages[0].carrier_id != "quiet":
            scene.waiting.append(len(messages))
            if len(scene.waiting) == slots:
                scene.taken.set()
            await scene.go.wait()
        return await process(workshop, messages, lease_ends=lease_ends)

    monkeypatch.setattr(loop, "process", waits)
    if flood:
        await shop.push(*(says({"number": f"N{n}", "status": "in_transit"}) for n in range(flood)))
    pace = Pace(batch_min=20, batch_max=20, batches_in_progress=slots)
    dsn = shop.database.service_dsn
    lookout = Lookout(dsn, lambda: make_pool(dsn, name="look-out", limits=replace(LIMITS, connections_max=1)))
    worker = Worker(shop.workshop, listener=listener, woken=listener.event(INBOX), waker=waker, pace=pace, lookout=lookout)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(20):
        await scene.taken.wait()
        yield scene
        scene.go.set()
        worker.stop()
        await running
    await waker.stop()
    await listener.stop()


async def test_a_quiet_carrier_is_served_while_every_slot_is_taken(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stuck(shop, monkeypatch) as scene:
        await scene.push_quietly()
        await scene.shop.until("SELECT count(*) FROM statesvc.message WHERE carrier_id = 'quiet'", 1)
        assert len(scene.waiting) == SLOTS, "no more of the flood was claimed"


async def test_a_quiet_carrier_does_not_wait_for_the_claim_of_more_of_the_flood(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow_claim(connection: AsyncConnection[Any], what: Claim) -> Claimed:
        asked.set()
        await answer.wait()
        return await claim(connection, what)

    async with stuck(shop, monkeypatch, slots=1) as scene:
        monkeypatch.setattr(loop, "claim", slow_claim)
        scene.go.set()
        await asked.wait()
        await scene.push_quietly()
        await scene.shop.until("SELECT count(*) FROM statesvc.message WHERE carrier_id = 'quiet'", 1)
        answer.set()


async def test_a_wake_up_that_names_nobody_will_do(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stuck(shop, monkeypatch) as scene:
        await scene.push_quietly(named=None)
        await scene.shop.until("SELECT count(*) FROM statesvc.message WHERE carrier_id = 'quiet'", 1)


async def test_more_of_the_flood_costs_no_claim(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stuck(shop, monkeypatch) as scene:
        await scene.push_quietly()
        await scene.shop.until("SELECT count(*) FROM statesvc.message WHERE carrier_id = 'quiet'", 1)
        before = await scene.claims()
        for _ in range(20):
            scene.waker.wake(INBOX, "acme")
            await asyncio.sleep(0.005)
        assert await scene.claims() == before


async def test_nothing_is_claimed_beside_a_suspect(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    await shop.push(says({"number": "S", "status": "in_transit"}))
    assert len(await shop.claim(1)) == 1
    await shop.database.clock.advance(31)
    async with stuck(shop, monkeypatch, flood=0, slots=1) as scene:
        assert scene.waiting == [1]
        await scene.push_quietly()
        await asyncio.sleep(0.1)
        assert await scene.settled("quiet") == 0


def test_looks_come_a_few_at_once_and_in_the_long_run_at_their_rate() -> None:
    looks = Looks(counted_at=100.0)
    now = 100.0
    for _ in range(int(LOOKS_AT_ONCE)):
        assert looks.pause(now) == 0
        looks.looked(now)
    count = 0
    while now < 110.0:
        now += looks.pause(now) + 1e-6
        looks.looked(now)
        count += 1
    assert count == pytest.approx(10 * LOOKS_PER_SECOND, rel=0.02)

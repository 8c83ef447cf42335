"""The window of a worker that keeps up: new pushes wait for its end, and nothing else does."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.wakeup import INBOX, INBOX_NOW, READY_NOW
from tests.statesvc.worker.log_check import check_log
from tests.world.worker_harness import ACME, WorkerHarness, push_body

pytestmark = pytest.mark.slow


class PausedListener(Listener):
    """Tells in which of its pauses the worker is: they last as long as a query only for the end of
    its window, without a cooldown.
    """

    pauses = 0
    is_paused = False

    def pause(self) -> int | None:
        return self.pauses if self.is_paused else None

    @contextmanager
    def paused(self, channel: str) -> Iterator[None]:
        self.pauses += 1
        self.is_paused = True
        try:
            with super().paused(channel):
                yield
        finally:
            self.is_paused = False


def _scan(number: str, **more: Any) -> bytes:
    return push_body({"number": number, "status": "in_transit", **more})


@pytest.fixture
def listener(harness: WorkerHarness) -> PausedListener:
    return PausedListener(harness.database.service_dsn, READY_NOW)


async def _push_in_window(harness: WorkerHarness, listener: PausedListener) -> None:
    """Push until one waits: a claim that could not say whether it left something is followed at
    once, and opens no window.
    """
    for number in range(5):
        await harness.push(_scan(f"N{number}"))
        listener.event(INBOX).set()
        before = listener.pause()
        while waiting := await harness.rows("SELECT token, attempts FROM statesvc.inbox"):
            if before is not None and before == listener.pause() and waiting == [(None, 0)]:
                return
            await asyncio.sleep(0.01)
            before = listener.pause()
    pytest.fail("no push waited for a window")


async def test_pushes_wait_and_what_is_hurried_does_not(
    harness: WorkerHarness, listener: PausedListener
) -> None:
    async with harness.worker(listener, window_seconds=60, cooldown_seconds=0):
        await _push_in_window(harness, listener)
        listener.event(INBOX_NOW).set()
        await harness.until("SELECT count(*) FROM statesvc.inbox", 0, seconds=1)


async def test_a_worker_that_stops_ends_its_window(
    harness: WorkerHarness, listener: PausedListener
) -> None:
    async with harness.worker(listener, window_seconds=60, cooldown_seconds=0):
        await _push_in_window(harness, listener)
    assert await harness.rows("SELECT token, attempts FROM statesvc.inbox") == [(None, 0)]


async def test_what_becomes_due_ends_the_window(harness: WorkerHarness) -> None:
    await harness.push(_scan("N1"))
    await harness.as_owner(
        "UPDATE statesvc.inbox SET available_at = statesvc.clock() + interval '0.5 s'"
    )
    async with harness.worker(window_seconds=60):
        await harness.until("SELECT count(*) FROM statesvc.message", 1)


async def test_another_worker_claims_within_the_window_of_the_first(
    harness: WorkerHarness, listener: PausedListener
) -> None:
    async with harness.worker(listener, window_seconds=60, cooldown_seconds=0):
        await _push_in_window(harness, listener)
        assert len(await harness.claim()) == 1


async def test_a_push_whose_wake_up_was_lost_waits_for_the_sweep_and_no_window_more(
    harness: WorkerHarness, listener: PausedListener
) -> None:
    async with harness.worker(listener, window_seconds=0.1, sweep_seconds=0.5):
        await listener.start()
        await listener.wait_up(5)
        await harness.push(_scan("N1"))
        await harness.until("SELECT count(*) FROM statesvc.message", 1, seconds=2)


async def test_scans_of_a_shipment_keep_their_order_over_windows(
    harness: WorkerHarness, listener: PausedListener
) -> None:
    # of two batches in progress the second may find the shipment locked, and come after a third
    async with harness.worker(listener, window_seconds=0.1, batches_in_progress=1):
        for minute in range(6):
            await harness.push(_scan("N1", minute=minute, city=f"city {minute}"))
            listener.event(INBOX).set()
            await asyncio.sleep(0.04)
        await harness.until("SELECT count(*) FROM statesvc.message", 6)
    assert [event["location"]["city"] for event in await harness.events("N1")] == [
        f"city {minute}" for minute in range(6)
    ]
    await check_log(harness.connection, harness.keyring)


async def test_behind_a_flood_there_is_no_window(harness: WorkerHarness) -> None:
    quiet = replace(ACME, carrier_id="quiet")
    harness.context = replace(
        harness.context, carriers={**harness.context.carriers, "quiet": quiet}
    )
    await harness.push(*(_scan(f"F{n}") for n in range(300)))
    await harness.push(_scan("Q1"), carrier_id="quiet")
    async with harness.worker(window_seconds=60, batch_max=64):
        await harness.until("SELECT count(*) FROM statesvc.message WHERE carrier_id = 'quiet'", 1)
        await harness.until("SELECT count(*) FROM statesvc.message", 301)

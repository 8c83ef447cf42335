"""The worker's loop: clear the wake flag, claim, hand the batch over, claim again; sleep when nothing is there.

One claimer and a few batches in progress: while one batch waits for the database the next is read. A batch grows with the
backlog, so that a quiet inbox is served at once and a full one cheaply.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import psycopg
import structlog

from statesvc.inbox.claim import Claim, Message, claim, release, seconds_until_due
from statesvc.telemetry.names import Stage
from statesvc.wakeup.channels import LOG, OUTBOX
from statesvc.wakeup.listener import Listener
from statesvc.wakeup.waker import Waker
from statesvc.worker.batch import Workshop, process
from statesvc.worker.failures import again_seconds

_CANCEL_SECONDS: Final = 2.0
_RELEASE_SECONDS: Final = 2.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a worker claims. `sweep_seconds`: between looks below the low-water marks, and the longest sleep."""

    batch_min: int = 64
    batch_max: int = 512
    bytes_max: int = 4 * 1024 * 1024
    lease_seconds: float = 30.0
    sweep_seconds: float = 30.0
    deaf_sweep_seconds: float = 0.5
    """The longest sleep while the listener is down."""
    batches_in_progress: int = 3
    """Measured: with 2, one claim at a time left a third of the core idle."""
    grace_seconds: float = 30.0


class Worker:
    """Works until `stop`; safe to stop before it runs, and twice. `woken` is the listener's flag for the inbox."""

    def __init__(self, workshop: Workshop, *, listener: Listener, woken: asyncio.Event, waker: Waker, pace: Pace) -> None:
        self._workshop = workshop
        self._listener = listener
        self._woken = woken
        self._waker = waker
        self._pace = pace
        self._stopping = asyncio.Event()
        self._slots = asyncio.Semaphore(pace.batches_in_progress)
        self._running: dict[asyncio.Task[None], UUID] = {}
        self._swept_at = float("-inf")

    def stop(self) -> None:
        """Claims no more; `run` returns when the batches in progress are done or the grace is over."""
        self._stopping.set()
        self._woken.set()

    async def run(self) -> None:
        """Works until stopped. Raises when a batch meets a defect."""
        size = self._pace.batch_min
        failures = 0
        try:
            while not self._stopping.is_set():
                async with self._slots:
                    pass
                self._woken.clear()
                try:
                    messages = [] if self._stopping.is_set() else await self._claim(size)
                    pause = 0.0 if messages else await self._pause()
                    failures = 0
                except Exception:
                    log.warning("claim_failed", attempt=failures, exc_info=True)
                    messages, pause = [], again_seconds(failures) + 0.05
                    failures += 1
                if messages:
                    size = min(self._pace.batch_max, size * 2) if len(messages) >= size else max(self._pace.batch_min, size // 2)
                    await (self._start_alone if _is_suspect(messages) else self._start)(messages)
                else:
                    await self._sleep(pause)
        finally:
            await self._drain()

    async def _claim(self, limit: int) -> list[Message]:
        sweep = time.monotonic() - self._swept_at >= self._pace.sweep_seconds
        asked = Claim(
            worker=self._workshop.worker,
            limit=limit,
            lease_seconds=self._pace.lease_seconds,
            bytes_max=self._pace.bytes_max,
            sweep=sweep,
        )
        telemetry = self._workshop.telemetry
        with telemetry.stage(Stage.CLAIM, limit=limit):
            async with self._workshop.pool.connection() as connection:
                messages = await claim(connection, asked)
        if sweep:
            self._swept_at = time.monotonic()
        telemetry.claims.add(1, {"queue": "inbox", "fill": "empty" if not messages else "full" if len(messages) >= limit else "partial"})
        for carrier_id, count in Counter(message.carrier_id for message in messages).items():
            telemetry.messages_claimed.add(count, {"carrier": carrier_id})
        self._observe_lag(messages)
        return messages

    def _observe_lag(self, messages: list[Message]) -> None:
        """Of each carrier its oldest message of the claim, by this process's clock."""
        now = datetime.now(UTC)
        oldest: dict[str, datetime] = {}
        for message in messages:
            if message.attempts == 1:
                oldest.setdefault(message.carrier_id, message.received_at)
        for carrier_id, received_at in oldest.items():
            self._workshop.telemetry.pickup_lag.record(max(0.0, (now - received_at).total_seconds()), {"carrier": carrier_id})

    async def _pause(self) -> float:
        """Until the next message is due, at most until the next sweep."""
        longest = self._pace.sweep_seconds if self._listener.is_up else self._pace.deaf_sweep_seconds
        async with self._workshop.pool.connection() as connection:
            due = await seconds_until_due(connection)
        jittered = longest * random.uniform(0.9, 1.1)  # noqa: S311 - so that workers do not sweep in step
        return jittered if due is None else min(jittered, max(due, 0.0) + 0.001)

    async def _sleep(self, seconds: float) -> None:
        # not wait_for: on Python 3.11 it may swallow a cancellation
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    async def _start(self, messages: list[Message]) -> None:
        await self._slots.acquire()
        lease_ends = time.monotonic() + self._pace.lease_seconds
        task = asyncio.create_task(self._work(messages, lease_ends), name=f"batch-{messages[0].token}")
        self._running[task] = messages[0].token
        task.add_done_callback(self._done)

    async def _start_alone(self, messages: list[Message]) -> None:
        """Nothing else is in progress meanwhile: a message that kills this process charges nobody else."""
        while self._running:
            await asyncio.wait(self._running)
        await self._start(messages)
        stopping = asyncio.create_task(self._stopping.wait(), name="worker-stopping")
        await asyncio.wait({*self._running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._slots.release()

    async def _work(self, messages: list[Message], lease_ends: float) -> None:
        try:
            told = await process(self._workshop, messages, lease_ends=lease_ends)
        except Exception:
            # the lease's end hands them on; each is then claimed alone
            log.exception("batch_abandoned", messages=len(messages))
            return
        self._waker.wake(LOG)
        if told:
            self._waker.wake(OUTBOX)

    async def _drain(self) -> None:
        """Finishes what is in progress within the grace, then gives the rest back; at once where `run` itself was cancelled."""
        task = asyncio.current_task()
        is_cancelled = task is not None and task.cancelling() > 0
        try:
            if self._running and not is_cancelled:
                await asyncio.wait(self._running, timeout=self._pace.grace_seconds)
        finally:
            await self._give_back(dict(self._running))

    async def _give_back(self, late: dict[asyncio.Task[None], UUID]) -> None:
        """Best effort: where the database is away, the end of the lease does the same."""
        if not late:
            return
        for task in late:
            task.cancel("the grace time is over")
        await asyncio.wait(late, timeout=_CANCEL_SECONDS)
        try:
            async with asyncio.timeout(_RELEASE_SECONDS), self._workshop.pool.connection() as connection:
                for token in late.values():
                    await release(connection, token)
        except (psycopg.Error, TimeoutError):
            log.warning("leases_not_released", batches=len(late), exc_info=True)
        else:
            log.warning("leases_released", batches=len(late))


def _is_suspect(messages: list[Message]) -> bool:
    """An attempt at this message ended without a verdict before; the claim gives it out alone."""
    return any(message.attempts - message.retries > 1 for message in messages)

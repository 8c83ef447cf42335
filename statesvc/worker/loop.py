"""The worker's loop: clear the wake flag, claim, hand the batch over, claim again; sleep when nothing is there.

One claimer and a few batches in progress: while one batch waits for the database the next is read. A batch grows with the
backlog, so that a quiet inbox is served at once and a full one cheaply; but not at the cost of a quiet carrier (`share`).
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

from statesvc.inbox.claim import Claim, Message, claim, extend, outlook, release
from statesvc.telemetry.names import Stage
from statesvc.wakeup.channels import INBOX, LOG, OUTBOX
from statesvc.wakeup.listener import Listener
from statesvc.wakeup.waker import Waker
from statesvc.worker.batch import Workshop, process
from statesvc.worker.failures import again_seconds
from statesvc.worker.lease import LeaseLostError, under_lease
from statesvc.worker.share import Growth, apart
from statesvc.worker.turns import Turns

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
        self._running: dict[asyncio.Task[None], UUID] = {}
        self._changed = asyncio.Event()
        """A batch ended, or the worker is told to stop."""
        self._turns = Turns()
        self._throttled = False
        """A carrier's bound kept back what was ready when this worker last found nothing."""
        self._swept_at = float("-inf")

    def stop(self) -> None:
        """Claims no more; `run` returns when the batches in progress are done or the grace is over."""
        self._stopping.set()
        self._woken.set()
        self._changed.set()

    async def run(self) -> None:
        """Works until stopped. Raises when a batch meets a defect."""
        growth = Growth(least=self._pace.batch_min, most=self._pace.batch_max)
        failures = 0
        try:
            while await self._at_most_running(self._pace.batches_in_progress - 1):
                self._woken.clear()
                try:
                    messages = await self._claim(growth.size)
                    pause = 0.0 if messages else await self._pause()
                    failures = 0
                except Exception:
                    log.warning("claim_failed", attempt=failures, exc_info=True)
                    messages, pause = [], again_seconds(failures) + 0.05
                    failures += 1
                if not messages:
                    await self._sleep(pause)
                elif messages[0].is_suspect:
                    await self._work_alone(messages)
                else:
                    quiet, rest = apart(messages)
                    growth.claimed(len(messages), quiet=bool(quiet), now=time.monotonic())
                    self._turns.served()
                    for batch in filter(None, (quiet, rest)):
                        self._start(batch)
        finally:
            await self._drain()

    async def _at_most_running(self, batches: int) -> bool:
        """Waits until no more than so many batches are in progress. False: told to stop."""
        while len(self._running) > batches and not self._stopping.is_set():
            self._changed.clear()
            await self._changed.wait()
        return not self._stopping.is_set()

    async def _work_alone(self, messages: list[Message]) -> None:
        """A message that may kill the process: with nothing else in progress, so that nothing else is charged for it."""
        began = time.monotonic()
        for message in messages:
            if message.rescued_from is not None:
                self._workshop.telemetry.messages_rescued.add(1, {"carrier": message.carrier_id})
                log.warning("lease_taken_over", message_id=str(message.message_id), carrier=message.carrier_id, worker=message.rescued_from)
        self._start(messages, after=tuple(self._running))
        await self._at_most_running(0)
        self._turns.rescued(began=began, ended=time.monotonic())

    async def _claim(self, limit: int) -> list[Message]:
        sweep = time.monotonic() - self._swept_at >= self._pace.sweep_seconds
        asked = Claim(
            worker=self._workshop.worker,
            limit=limit,
            lease_seconds=self._pace.lease_seconds,
            bytes_max=self._pace.bytes_max,
            sweep=sweep,
            rescue_first=self._turns.rescue_first(time.monotonic()),
        )
        self._throttled = False
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
        """Until it is worth to claim again, at most until the next sweep."""
        longest = self._pace.sweep_seconds if self._listener.is_up else self._pace.deaf_sweep_seconds
        async with self._workshop.pool.connection() as connection:
            due, self._throttled = await outlook(connection)
        jittered = longest * random.uniform(0.9, 1.1)  # noqa: S311 - so that workers do not sweep in step
        return jittered if due is None else min(jittered, max(due, 0.0) + 0.001)

    async def _sleep(self, seconds: float) -> None:
        # not wait_for: on Python 3.11 it may swallow a cancellation
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    def _start(self, messages: list[Message], *, after: tuple[asyncio.Task[None], ...] = ()) -> None:
        task = asyncio.create_task(self._work(messages, after), name=f"batch-{messages[0].token}")
        self._running[task] = messages[0].token
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._changed.set()
        if self._throttled:
            # what it held may have been all that its carrier may have in flight
            self._woken.set()

    async def _work(self, messages: list[Message], after: tuple[asyncio.Task[None], ...]) -> None:
        lease_seconds, token = self._pace.lease_seconds, messages[0].token
        lease_ends = time.monotonic() + lease_seconds

        async def work() -> int:
            if after:
                await asyncio.wait(after)
            return await process(self._workshop, messages, lease_ends=lease_ends)

        async def extended() -> int:
            async with self._workshop.pool.connection() as connection:
                return await extend(connection, token, lease_seconds=lease_seconds)

        try:
            told = await under_lease(work(), extend=extended, lease_seconds=lease_seconds)
        except LeaseLostError:
            log.warning("lease_lost", messages=len(messages), token=str(token))
            return
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
            late = dict(self._running)
            await self._give_back(late)
            if late or self._throttled:
                # others can go on with it now
                self._waker.wake(INBOX)

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

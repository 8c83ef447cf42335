"""The worker's loop: clear the wake flag, claim, hand the batch over, claim again; sleep when idle.

One claimer and a few batches in progress: while a batch waits for the database, the next is read. A
batch grows with the backlog, so a quiet inbox is served at once and a full inbox cheaply; messages
of quiet carriers go first (`batch_size`).
"""

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import psycopg
import structlog

from statesvc.append.retry import transaction_backoff_seconds
from statesvc.background.busy_priority import BusyPriority
from statesvc.background.waiting import cancel_fully, set_within
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.database.wakeups.wakeup import INBOX, LOG, OUTBOX, READY_NOW
from statesvc.queue.claim import Claimed, ClaimRequest, Message, claim, extend, next_claim, release
from statesvc.telemetry.metric import Stage
from statesvc.worker.batch import process, process_locked, requeue_locked
from statesvc.worker.batch_context import BatchContext
from statesvc.worker.batch_size import BatchSize, split_by_volume
from statesvc.worker.lease import LeaseLostError, RescueShare, under_lease

# beyond the grace: together they bound how long a stopping worker outlives it
_CANCEL_SECONDS: Final = 2.0
_RELEASE_SECONDS: Final = 2.0
# Share of the lease for which postponed messages wait for locks. It is longer than many batches,
# and excludes locks that a session holds.
_LOCK_SHARE: Final = 1 / 15
# Longest time until a message that was postponed once is available again.
_POSTPONED_SECONDS: Final = 0.1
_WINDOW_SECONDS_MIN: Final = 0.02
# Messages a second above which the least window makes batches as large as they need to be.
_PACE_MAX: Final = 400
# Between queries for later due times: under a pinned xmin each walks 30 seconds of leases.
_NEXT_DUE_SECONDS: Final = 1.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    """Limits of a worker's claims.

    `sweep_seconds`: between claims that ignore the low-water marks, and the longest sleep.
    """

    batch_min: int = 64
    batch_max: int = 512
    bytes_max: int = 4 * 1024 * 1024
    lease_seconds: float = 30.0
    sweep_seconds: float = 30.0
    sweep_seconds_without_listener: float = 0.5
    """The longest sleep while the listener is down."""
    window_seconds: float = 0.0
    """From the answer of a claim that left no message ready to the next claim; at least 20 ms.

    Pushes that arrive meanwhile share a batch, and its fixed cost, which is most of a message's
    cost below 400 messages a second: above, the window is 20 ms. Messages that become due by the
    clock, or are released or replayed, do not wait.
    """
    batches_in_progress: int = 2
    """Measured: a third batch settles no more messages.

    The loop is busy with two, and everything else on the machine waits longer for a core.
    """
    grace_seconds: float = 30.0


class Worker:
    """Runs until `stop`; stopping it before it runs, or twice, is safe.

    `woken` is the listener's flag for the inbox.
    """

    def __init__(
        self,
        context: BatchContext,
        *,
        listener: Listener,
        woken: asyncio.Event,
        ready_now: asyncio.Event | None = None,
        waker: Waker,
        limits: WorkerLimits,
        priority: BusyPriority | None = None,
    ) -> None:
        # the batch knows when its messages are ready again, so it tells the loop; a query would
        # cost a round trip
        self._context = replace(context, on_postponed=self._on_postponed)
        self._listener = listener
        self._woken = woken
        # apart from `_woken`: only wake-ups that have no more to wait for may cut the window short
        self._ready_now = ready_now or asyncio.Event()
        self._waker = waker
        self._limits = limits
        self._priority = priority or BusyPriority(0)
        self._stopping = asyncio.Event()
        self._running: dict[asyncio.Task[None], UUID] = {}
        """Batches in progress, with their tokens."""
        self._waiting_batch: asyncio.Task[None] | None = None
        """The reserved slot: messages that wait for the lock of a shipment, next to
        the batches in progress.
        """
        self._waiting_messages: list[Message] = []
        self._changed = asyncio.Event()
        """Set when a batch ends, or the worker is to stop."""
        self._rescues = RescueShare()
        self._throttled = False
        """True if a carrier's bound held back ready messages at this worker's last empty claim."""
        # minus infinity: the first claim of a process sweeps below the low-water marks
        self._swept_at = float("-inf")
        self._claimed_at = float("-inf")
        """Start of the last claim."""
        self._pace = 0.0
        """Messages claimed a second; over the last second, older ones fade."""
        self._ask_due_at = self._due_at = float("-inf")
        """Times to query the next due time again, and that due time."""
        self._size = BatchSize(least=limits.batch_min, most=limits.batch_max)
        # processor time, not wall time: a batch that waits for the database costs the loop little
        self._loop_seconds = 0.0
        """Processor time of the loop when the last batch ended."""

    def stop(self) -> None:
        """Claim no more; `run` returns when the batches in progress are done or the grace is
        over.
        """
        # then all that the loop may sleep on: it looks at `_stopping` only when woken
        self._stopping.set()
        self._woken.set()
        self._ready_now.set()
        self._changed.set()

    async def run(self) -> None:
        """Run until stopped. Raises when a batch meets a defect."""
        # of this thread: helper threads and child processes do not make the loop late
        self._loop_seconds = time.thread_time()
        failures = 0
        try:
            # a slot first, then the claim: no lease runs out while its batch waits for a slot
            while await self._at_most_running(self._limits.batches_in_progress - 1):
                # before the claim, never after: a hint that comes during the claim must survive it
                self._woken.clear()
                self._ready_now.clear()
                messages: list[Message] = []
                complete = False
                running = len(self._running)
                try:
                    messages, _, complete = await self._claim(self._size.size)
                    if messages:
                        # no ready message was left: no empty claim is needed to find that out
                        pause = self._known_pause(time.monotonic()) if complete else 0.0
                    else:
                        # inside the try: this query may fail too, and then backs off like the claim
                        pause = await self._pause(complete=complete)
                        # a batch that ended meanwhile may have made room for its carrier: it wakes
                        # the loop only once that is known to be throttled
                        if not complete and len(self._running) < running:
                            pause = 0.0
                    failures = 0
                except Exception:
                    log.warning("claim_failed", attempt=failures, exc_info=True)
                    # the jitter begins at zero: without a least pause a refusing database is asked
                    # in a spin
                    pause = transaction_backoff_seconds(failures) + 0.05
                    failures += 1
                until = time.monotonic() + pause
                # a suspect comes without company: the claim sees to that
                if messages and messages[0].is_suspect:
                    await self._work_alone(messages)
                    continue
                if messages:
                    self._size.claimed(len(messages))
                    self._rescues.lanes_served()
                    for part in split_by_volume(self._without_postponed(messages)):
                        self._start(part)
                if complete:
                    await self._wait_for_more()
                # not wait_for: on Python 3.11 it may swallow a cancellation
                await set_within(self._woken, until - time.monotonic())
        finally:
            await self._drain()

    async def _wait_for_more(self) -> None:
        """Wait for the window's end, a due time, a wake-up of `INBOX_NOW` or the worker's stop."""
        window = _WINDOW_SECONDS_MIN
        if self._pace <= _PACE_MAX:
            window = max(window, self._limits.window_seconds)
        # a due time before the claim was served by it: without this the window would end at
        # once, for ever
        if self._due_at > self._claimed_at:
            window = min(window, self._due_at - time.monotonic())
        # the process sleeps through hints of new pushes, which the claim at the window's end
        # reads anyway
        with self._listener.paused(INBOX):
            await set_within(self._ready_now, window)

    async def _at_most_running(self, batches: int) -> bool:
        """Wait until at most `batches` batches are in progress. False: the worker is to stop."""
        while (
            len(self._running.keys() - {self._waiting_batch}) > batches
            and not self._stopping.is_set()
        ):
            self._changed.clear()
            await self._changed.wait()
        return not self._stopping.is_set()

    async def _work_alone(self, messages: list[Message]) -> None:
        """Process a message that may kill the worker, alone: no other message is charged for it."""
        began = time.monotonic()
        # cancelled and given back first: a death beside it would charge them, too
        await self._end_waiting_batch()
        for message in messages:
            if message.rescued_from is not None:
                self._context.telemetry.messages_rescued.add(1, {"carrier": message.carrier_id})
                log.warning(
                    "lease_taken_over",
                    message_id=str(message.message_id),
                    carrier=message.carrier_id,
                    worker=message.rescued_from,
                )
        # a tuple: `_running` changes while the task waits for those that ran when it was made
        self._start(messages, after=tuple(self._running))
        # the next claim could bring another suspect, and two at once leave open which of them kills
        # the worker
        await self._at_most_running(0)
        self._rescues.rescued(began=began, ended=time.monotonic())

    def _without_postponed(self, messages: list[Message]) -> list[Message]:
        """Move messages that were postponed to the reserved slot; while it is taken they are
        tried with the others.
        """
        postponed = [message for message in messages if message.postponed]
        # one slot only: more waiting transactions would occupy the pool while others could append
        if not postponed or self._waiting_batch is not None:
            return messages
        self._waiting_messages = postponed
        self._waiting_batch = self._start(
            postponed, wait_seconds=self._limits.lease_seconds * _LOCK_SHARE
        )
        return [message for message in messages if not message.postponed]

    async def _end_waiting_batch(self) -> None:
        """Give back messages that wait for a lock, before a message is processed alone."""
        if self._waiting_batch is not None:
            messages = self._waiting_messages
            # to its end: a transaction that still runs holds the rows that `postpone` needs
            await cancel_fully(self._waiting_batch)
            await requeue_locked(self._context, messages[0].token, messages)

    def _on_postponed(self) -> None:
        # earlier than a due time that was read before the messages were given back
        self._due_at = min(self._due_at, time.monotonic() + _POSTPONED_SECONDS)
        self._woken.set()

    async def _claim(self, limit: int) -> Claimed:
        # a message whose ingest committed late lies below the low-water mark, where only a sweep
        # looks
        sweep = time.monotonic() - self._swept_at >= self._limits.sweep_seconds
        seconds, self._claimed_at = time.monotonic() - self._claimed_at, time.monotonic()
        request = ClaimRequest(
            worker=self._context.worker,
            limit=limit,
            lease_seconds=self._limits.lease_seconds,
            bytes_max=self._limits.bytes_max,
            sweep=sweep,
            rescue_first=self._rescues.rescue_first(time.monotonic()),
        )
        # forgotten at each claim: a bound that was lifted meanwhile must not make each batch's end
        # wake the loop
        self._throttled = False
        # given back before the batch starts: a connection held from claim to settle would be one
        # per batch
        with self._context.telemetry.stage(Stage.CLAIM, limit=limit):
            async with self._context.pool.connection() as connection:
                claimed = await claim(connection, request)
        # only after success: a sweep that failed is due again
        if sweep:
            self._swept_at = time.monotonic()
        self._count_claimed(claimed, limit)
        self._pace *= max(0.0, 1.0 - seconds)
        self._pace += len(claimed.messages) / max(seconds, 1.0)
        # a full claim means a backlog: the process then yields the processor to ingress, which must
        # acknowledge
        self._priority.claimed(len(claimed.messages), has_backlog=len(claimed.messages) >= limit)
        return claimed

    def _count_claimed(self, claimed: Claimed, limit: int) -> None:
        telemetry, (messages, buried, _) = self._context.telemetry, claimed
        telemetry.claims.add(
            1,
            {
                "queue": "inbox",
                "fill": "empty"
                if not messages
                else "full"
                if len(messages) >= limit
                else "partial",
            },
        )
        for carrier_id, count in Counter(message.carrier_id for message in messages).items():
            telemetry.messages_claimed.add(count, {"carrier": carrier_id})
        for (carrier_id, cause), count in Counter(buried).items():
            self._context.burials.count(carrier_id, cause.value, count)
        # of each carrier its oldest message of the claim, by this process's clock
        now = datetime.now(UTC)
        oldest: dict[str, datetime] = {}
        for message in messages:
            # a retry's age says how long it was retried, not how late the pickup is
            if message.attempts == 1:
                oldest.setdefault(message.carrier_id, message.received_at)
        for carrier_id, received_at in oldest.items():
            telemetry.pickup_lag.record(
                # the two times are of two clocks: it may come out below zero
                max(0.0, (now - received_at).total_seconds()),
                {"carrier": carrier_id},
            )

    async def _pause(self, *, complete: bool) -> float:
        """Return the seconds after an empty claim until it is worth claiming again, at
        most until the next sweep.
        """
        now = time.monotonic()
        ask_due = now >= min(self._ask_due_at, self._due_at)
        # the claim saw every lane, and the due time is still fresh: a query would learn nothing
        if complete and not ask_due:
            return self._known_pause(now)
        async with self._context.pool.connection() as connection:
            # without `ahead` it asks about bounds alone: due times need the walk that
            # `_NEXT_DUE_SECONDS` spares
            due, self._throttled = await next_claim(connection, ahead=ask_due)
        now = time.monotonic()
        if not ask_due:
            return self._known_pause(now)
        self._ask_due_at = now + _NEXT_DUE_SECONDS
        # the millisecond: awake before the time has come by the database's clock, the claim would
        # be empty
        self._due_at = math.inf if due is None else now + max(due, 0.0) + 0.001
        return min(self._longest_pause(), max(0.0, self._due_at - now))

    def _known_pause(self, now: float) -> float:
        """Return the seconds until the next known due time, or until that knowledge is too old."""
        return min(self._longest_pause(), max(0.0, min(self._due_at, self._ask_due_at) - now))

    def _longest_pause(self) -> float:
        longest = (
            self._limits.sweep_seconds
            if self._listener.is_up
            else self._limits.sweep_seconds_without_listener
        )
        # so that workers do not sweep in step
        return longest * random.uniform(0.9, 1.1)  # noqa: S311

    def _start(
        self,
        messages: list[Message],
        *,
        after: Collection[asyncio.Task[None]] = (),
        wait_seconds: float | None = None,
    ) -> asyncio.Task[None]:
        """Start a batch.

        `after`: only when these batches have ended. `wait_seconds`: they wait for locked shipments.
        """
        token = messages[0].token
        # kept in `_running` also because the event loop holds tasks only weakly
        task = asyncio.create_task(self._work(messages, after, wait_seconds), name=f"batch-{token}")
        self._running[task] = token
        task.add_done_callback(lambda task: self._done(task, len(messages)))
        return task

    def _done(self, task: asyncio.Task[None], messages: int) -> None:
        self._running.pop(task, None)
        # it has the reserved slot, so no claim waits for it; its time is mostly waiting for locks
        if task is self._waiting_batch:
            self._waiting_batch = None
            return
        before, self._loop_seconds = self._loop_seconds, time.thread_time()
        self._size.worked(messages, loop_seconds=self._loop_seconds - before)
        self._changed.set()
        if self._throttled:
            # what it held may have been all that its carrier may have in flight
            self._woken.set()
            self._ready_now.set()

    async def _work(
        self,
        messages: list[Message],
        after: Collection[asyncio.Task[None]],
        wait_seconds: float | None,
    ) -> None:
        lease_seconds, token = self._limits.lease_seconds, messages[0].token
        # later than the real end by the claim's way back; the margins of the retry policy are wider
        # than that
        lease_ends = time.monotonic() + lease_seconds

        async def work() -> int:
            # under the lease already: the wait is short, and extending goes on meanwhile
            if after:
                await asyncio.wait(after)
            if wait_seconds is not None:
                return await process_locked(
                    self._context, messages, lease_ends=lease_ends, wait_seconds=wait_seconds
                )
            return await process(self._context, messages, lease_ends=lease_ends)

        async def extended() -> int:
            async with self._context.pool.connection() as connection:
                return await extend(connection, token, lease_seconds=lease_seconds)

        try:
            changes = await under_lease(work(), extend=extended, lease_seconds=lease_seconds)
        except LeaseLostError:
            log.warning("lease_lost", messages=len(messages), token=str(token))
            return
        except Exception:
            # the lease's end hands them on; each is then claimed alone
            log.exception("batch_abandoned", messages=len(messages))
            return
        # after the commit and outside of it: a NOTIFY inside would hold the cluster's lock while
        # the disk syncs
        self._waker.wake(LOG)
        if changes:
            self._waker.wake(OUTBOX)

    async def _drain(self) -> None:
        """Finish batches in progress within the grace period, then give the rest back.

        At once where `run` itself was cancelled.
        """
        task = asyncio.current_task()
        # a cancelled `run` was told to end now: waiting out the grace would swallow the
        # cancellation
        is_cancelled = task is not None and task.cancelling() > 0
        try:
            if self._running and not is_cancelled:
                await asyncio.wait(self._running, timeout=self._limits.grace_seconds)
        finally:
            # also if the wait was cancelled: leases given back are claimed at once, others after
            # their end
            # a copy: cancelled batches leave `_running` before their tokens are released
            late = dict(self._running)
            await self._give_back(late)
            if late or self._throttled:
                # others can go on with it now
                for channel in READY_NOW:
                    self._waker.wake(channel)

    async def _give_back(self, late: dict[asyncio.Task[None], UUID]) -> None:
        """Give late batches back with best effort: if the database is away, the end of
        the lease does the same.
        """
        if not late:
            return
        for task in late:
            task.cancel("the grace time is over")
        # the batches end first: `release` then gives back only what none of them settled
        await asyncio.wait(late, timeout=_CANCEL_SECONDS)
        try:
            async with (
                asyncio.timeout(_RELEASE_SECONDS),
                self._context.pool.connection() as connection,
            ):
                # parts of one claim share its token
                for token in set(late.values()):
                    await release(connection, token)
        except (psycopg.Error, TimeoutError):
            log.warning("leases_not_released", batches=len(late), exc_info=True)
        else:
            log.warning("leases_released", batches=len(late))

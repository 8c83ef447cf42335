"""The worker's loop: clear the wake flag, claim, hand the batch over, claim again; sleep when nothing is there.

One claimer and a few batches in progress: while one batch waits for the database the next is read. A batch grows with the
backlog, so that a quiet inbox is served at once and a full one cheaply (`share`). While it has a flood in hand, what others
send is claimed at once all the same (`lookout`), and goes ahead (`passage`).
"""

import asyncio
import contextlib
import math
import random
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import psycopg
import structlog

from statesvc.append.failures import again_seconds
from statesvc.append.passage import Passage
from statesvc.background.waiting import set_within
from statesvc.database.wakeups.channels import INBOX, LOG, OUTBOX
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.inbox.claim import Claim, Claimed, Message, claim, extend, outlook, release
from statesvc.telemetry.names import Stage
from statesvc.worker.batch import Workshop, process
from statesvc.worker.garbage import Garbage
from statesvc.worker.lease import LeaseLostError, under_lease
from statesvc.worker.lookout import Lookout
from statesvc.worker.share import Growth, apart, loud
from statesvc.worker.turns import Turns

_CANCEL_SECONDS: Final = 2.0
_RELEASE_SECONDS: Final = 2.0
_LOOK_AHEAD_SECONDS: Final = 1.0
"""Between looks for what becomes available later: under a pinned xmin each walks all leases of the last half minute."""

_TRICKLE_SECONDS: Final = 2.0
"""For so long after the look-out claimed something one batch is in progress at a time."""

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
    batches_in_progress: int = 2
    """Measured: a third one settles no more, for the loop is busy with two, and everybody else on the machine waits longer for a core."""
    express_in_progress: int = 2
    """Batches beside these, of what the look-out claimed."""
    grace_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class _Hand:
    """What a batch in progress holds. `loud`: carriers with much in it; a claim beside it leaves them out."""

    token: UUID
    messages: int
    loud: frozenset[str]
    express: bool


class Worker:
    """Works until `stop`; safe to stop before it runs, and twice. `woken` is the listener's flag for the inbox."""

    def __init__(
        self,
        workshop: Workshop,
        *,
        listener: Listener,
        woken: asyncio.Event,
        waker: Waker,
        pace: Pace,
        lookout: Lookout | None = None,
    ) -> None:
        self._workshop = workshop
        self._passage = Passage()
        self._yielding = replace(workshop, give_way=self._passage.give_way)
        self._listener = listener
        self._woken = woken
        self._waker = waker
        self._pace = pace
        self._stopping = asyncio.Event()
        self._running: dict[asyncio.Task[None], _Hand] = {}
        self._changed = asyncio.Event()
        """A batch ended, or the worker is told to stop."""
        self._turns = Turns()
        self._throttled = False
        """A carrier's bound kept back what was ready when this worker last found nothing."""
        self._swept_at = float("-inf")
        self._look_ahead_at = self._due_at = float("-inf")
        """When to ask again what becomes available later, and when the earliest of it does."""
        self._growth = Growth(least=pace.batch_min, most=pace.batch_max)
        self._loop_seconds = 0.0
        """Of the processor, when a batch was last done."""
        self._asleep = False
        self._claiming = False
        self._flooding = frozenset[str]()
        """Who had much in the last claim, and likely has in the next."""
        self._alone = False
        """A suspect is worked on."""
        self._garbage = Garbage(time.monotonic())
        self._lookout = lookout
        self._trickle_until = float("-inf")

    def stop(self) -> None:
        """Claims no more; `run` returns when the batches in progress are done or the grace is over."""
        self._stopping.set()
        self._woken.set()
        self._changed.set()
        self._watch()

    async def run(self) -> None:
        """Works until stopped. Raises when a batch meets a defect."""
        with self._garbage:
            await self._run()

    async def _run(self) -> None:
        self._loop_seconds = time.thread_time()
        if self._lookout is not None:
            self._lookout.start(self._ask_beside, self._take)
        failures = 0
        try:
            while await self._at_most_running(self._slots() - 1):
                self._woken.clear()
                try:
                    messages = await self._claim(self._growth.size)
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
                    self._growth.claimed(len(messages))
                    self._turns.served()
                    if quiet:
                        self._start(quiet, ahead=bool(rest))
                    if rest:
                        self._start(rest)
                        # what was announced during the claim may have come too late for it
                        self._look_again()
        finally:
            await self._drain()

    async def _at_most_running(self, batches: int) -> bool:
        """Waits until no more than so many batches are in progress. False: told to stop."""
        while self._slots_taken() > batches and not self._stopping.is_set():
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
        self._alone = True
        self._watch()
        try:
            if self._lookout is not None:
                await self._lookout.still()
            self._start(messages, after=tuple(self._running))
            await self._at_most_running(0)
        finally:
            self._alone = False
            self._watch()
        self._turns.rescued(began=began, ended=time.monotonic())

    def _slots(self) -> int:
        """One while others trickle in beside a flood: so a core is free for them more often, and the flood goes on."""
        return 1 if time.monotonic() < self._trickle_until else self._pace.batches_in_progress

    def _slots_taken(self) -> int:
        return sum(not hand.express for hand in self._running.values())

    def _watch(self) -> None:
        """Tells the look-out whom to pass by: nobody is to be claimed for while this loop has its hands free, or on a suspect.

        A claim out of a flood takes a while, and does not see what comes meanwhile: the hands are not free then.
        """
        if self._lookout is None:
            return
        busy = not (self._asleep or self._alone or self._stopping.is_set())
        full = len(self._running) - self._slots_taken() >= self._pace.express_in_progress
        held = (self._flooding if self._claiming else frozenset()).union(*(hand.loud for hand in self._running.values()))
        self._lookout.pass_by(held if busy and held and not full else None)

    def _look_again(self) -> None:
        if self._lookout is not None:
            self._lookout.again()

    def _ask_beside(self, carriers: frozenset[str]) -> Claim:
        pace = self._pace
        return Claim(
            worker=self._workshop.worker,
            limit=pace.batch_min,
            lease_seconds=pace.lease_seconds,
            bytes_max=pace.bytes_max,
            beside=tuple(sorted(carriers)),
        )

    def _take(self, claimed: Claimed) -> None:
        """What the look-out claimed."""
        self._received(claimed, self._pace.batch_min)
        if claimed.messages:
            self._trickle_until = time.monotonic() + _TRICKLE_SECONDS
            self._start(claimed.messages, ahead=True, express=True)

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
        self._claiming = True
        self._watch()
        try:
            with self._workshop.telemetry.stage(Stage.CLAIM, limit=limit):
                async with self._workshop.pool.connection() as connection:
                    claimed = await claim(connection, asked)
        finally:
            self._claiming = False
        self._flooding = loud(claimed.messages)
        if sweep:
            self._swept_at = time.monotonic()
        self._received(claimed, limit)
        return claimed.messages

    def _received(self, claimed: Claimed, limit: int) -> None:
        telemetry, (messages, buried) = self._workshop.telemetry, claimed
        telemetry.claims.add(1, {"queue": "inbox", "fill": "empty" if not messages else "full" if len(messages) >= limit else "partial"})
        for carrier_id, count in Counter(message.carrier_id for message in messages).items():
            telemetry.messages_claimed.add(count, {"carrier": carrier_id})
        for (carrier_id, cause), count in Counter(buried).items():
            telemetry.messages_buried.add(count, {"carrier": carrier_id, "cause": cause.value})
        self._observe_lag(messages)

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
        now = time.monotonic()
        ahead = now >= min(self._look_ahead_at, self._due_at)
        async with self._workshop.pool.connection() as connection:
            due, self._throttled = await outlook(connection, ahead=ahead)
        now = time.monotonic()
        if ahead:
            self._look_ahead_at = now + _LOOK_AHEAD_SECONDS
            self._due_at = math.inf if due is None else now + max(due, 0.0) + 0.001
        jittered = longest * random.uniform(0.9, 1.1)  # noqa: S311 - so that workers do not sweep in step
        until = self._due_at if ahead else min(self._due_at, self._look_ahead_at)
        return min(jittered, max(0.0, until - now))

    async def _sleep(self, seconds: float) -> None:
        # not wait_for: on Python 3.11 it may swallow a cancellation
        self._garbage.may_collect(time.monotonic(), busy=bool(self._running))
        self._asleep = True
        self._watch()
        try:
            await set_within(self._woken, seconds)
        finally:
            self._asleep = False
            self._watch()

    def _start(
        self, messages: list[Message], *, after: tuple[asyncio.Task[None], ...] = (), ahead: bool = False, express: bool = False
    ) -> None:
        """`after`: only when these have ended; `ahead`: the others give way; `express`: it takes no slot."""
        passing = self._passage.ahead() if ahead else contextlib.nullcontext()
        workshop = self._workshop if ahead else self._yielding
        token = messages[0].token
        task = asyncio.create_task(self._work(workshop, messages, after, passing), name=f"batch-{token}")
        self._running[task] = _Hand(token, len(messages), loud(messages), express)
        task.add_done_callback(self._done)
        self._watch()

    def _done(self, task: asyncio.Task[None]) -> None:
        hand = self._running.pop(task, None)
        self._garbage.may_collect(time.monotonic(), busy=bool(self._running))
        if hand is not None:
            before, self._loop_seconds = self._loop_seconds, time.thread_time()
            self._growth.worked(hand.messages, loop_seconds=self._loop_seconds - before)
            self._watch()
            if hand.express:
                # there is room for the next
                self._look_again()
        self._changed.set()
        if self._throttled:
            # what it held may have been all that its carrier may have in flight
            self._woken.set()

    async def _work(
        self,
        workshop: Workshop,
        messages: list[Message],
        after: tuple[asyncio.Task[None], ...],
        passing: contextlib.AbstractContextManager[Any],
    ) -> None:
        lease_seconds, token = self._pace.lease_seconds, messages[0].token
        lease_ends = time.monotonic() + lease_seconds

        async def work() -> int:
            if after:
                await asyncio.wait(after)
            with passing:
                return await process(workshop, messages, lease_ends=lease_ends)

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
            if self._lookout is not None:
                await self._lookout.stop()
            if self._running and not is_cancelled:
                await asyncio.wait(self._running, timeout=self._pace.grace_seconds)
        finally:
            late = {task: hand.token for task, hand in self._running.items()}
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

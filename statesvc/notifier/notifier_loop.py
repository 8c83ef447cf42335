"""The notifier role: each turn settles finished attempts and claims as far as permits allow.

```
turn: settle, claim --> send, many at once --(returns permits)--> ended
  ^ wake-up, earliest due time,   | a permit became free   | at once if more may wait for it,
  | safety sweep                  |                        | otherwise with the next claim
  +-------------------------------+------------------------+
```
An unsettled attempt is sent again after a crash, so it waits for a claim only a moment
(`NotifierLimits.settle_within_seconds`). The wake-up event is cleared before a turn, never after,
so that a hint during the turn survives. A permit is held for as long as its attempt lasts; claimed
and unsettled deliveries are bounded too, so memory does not grow while the database is away.
"""

import asyncio
import math
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import psycopg
import structlog
from psycopg import AsyncConnection

from statesvc.background.busy_priority import BusyPriority
from statesvc.background.waiting import cancel_fully, set_within
from statesvc.database.sql_errors import Failure, failure
from statesvc.database.wakeups.wakeup import LOG, OUTBOX, notify, reconnect_delays
from statesvc.delivery.limiter.permits import Permits
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.files.archive_errors import ArchivedHistoryError, UnreadableArchiveError
from statesvc.notifier.attempts import AttemptResult, Attempts
from statesvc.notifier.claim_outbox import ClaimedRows, Delivery, give_back, release
from statesvc.notifier.context import DatabaseClock, NotifierContext
from statesvc.notifier.housekeeping import BacklogBound, NotifierUpkeep
from statesvc.notifier.limiter_board import LimiterBoard
from statesvc.notifier.policy import log_notices
from statesvc.notifier.turn import Turn, TurnResult, take_turn
from statesvc.telemetry.metric import Stage

CLAIM_MAX: Final = 64
SETTLE_MAX: Final = 128
SETTLE_WITHIN_SECONDS: Final = 0.1
# Share of the grace for sending; the rest is for settling and releasing.
_SENDING_SHARE: Final = 0.8
_RELEASE_SECONDS: Final = 2.0
_SWEEP_SECONDS_WITHOUT_LISTENER: Final = (0.25, 1.0)
# Between queries for later due times, unless they are known to have changed.
_NEXT_DUE_SECONDS: Final = 1.0
# From a turn that claimed to the next turn: notifications that arrive meanwhile share it.
_SHARED_TURN_SECONDS: Final = 0.005

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifierLimits:
    """Bounds of a notifier. The lease outlasts the longest try and its settling."""

    in_flight_max: int = 256
    lease_seconds: float = 45.0
    sweep_seconds: float = 30.0
    settle_within_seconds: float = SETTLE_WITHIN_SECONDS
    """Longest wait of a delivered notification for the next claim; then it is settled alone."""
    grace_seconds: float = 30.0
    backlog: BacklogBound = field(default_factory=BacklogBound)


class Notifier:
    """`run` returns after `stop`, once deliveries in flight are settled or the grace is over."""

    def __init__(
        self,
        context: NotifierContext,
        *,
        worker: str,
        limits: NotifierLimits | None = None,
        priority: BusyPriority | None = None,
    ) -> None:
        self._context = context
        self._worker = worker
        self._limits = limits or NotifierLimits()
        self._priority = priority or BusyPriority(0)
        self._hinted = context.listener.event(OUTBOX)
        self._wake = asyncio.Event()
        self._stopped = asyncio.Event()
        # of this process alone: four notifiers may send four times as much (decision 7)
        self._permits = Permits(self._limits.in_flight_max)
        # shipments whose archived history could not be read; until a restart their notifications
        # hold the change only
        self._thin: set[UUID] = set()
        self._attempts = Attempts(
            context,
            self._permits,
            self._wake,
            settle_within_seconds=self._limits.settle_within_seconds,
        )
        self._claim_at = self._ask_due_at = self._due_at = float("-inf")
        """Times to claim, to query the next due time again, and that due time, on the monotonic
        clock.
        """
        self._has_rates = False
        """A subscription has a contracted rate: its permits change with time."""
        self._clock = DatabaseClock()
        self._board = LimiterBoard(context, self._permits, self._clock, worker=worker)
        self._board.observe()
        self._attempts.observe()
        self._upkeep = NotifierUpkeep(
            context,
            worker=worker,
            bound=self._limits.backlog,
            every_seconds=self._limits.sweep_seconds,
        )
        self._jitter = random.Random()  # noqa: S311 - spreads sweeps, guards nothing

    @property
    def in_flight(self) -> int:
        """Deliveries that are claimed but not settled."""
        return self._permits.unsettled

    def stop(self) -> None:
        """Claim no more. Safe to call twice, and before `run`."""
        self._stopped.set()
        self._wake.set()
        self._upkeep.stop()

    async def run(self) -> None:
        """Run until stopped. A defect in any of its parts ends it with that exception."""
        try:
            async with asyncio.TaskGroup() as group:
                turns = group.create_task(self._take_turns(group), name="notifier turns")
                hints = group.create_task(self._hear(), name="notifier hints")
                upkeep = group.create_task(self._upkeep.run(), name="notifier upkeep")
                # ends by itself: it must outlive the drain, and then withdraw its rows
                group.create_task(self._board.run(), name="notifier limiter board")
                await self._stopped.wait()
                await self._drain()
                # after the drain, which needs turns to settle what ended
                await cancel_fully(turns)
                await cancel_fully(hints)
                await cancel_fully(upkeep)
                # last, so that the limiter is shown until nothing is sent any more
                self._board.stop()
        finally:
            await self._release()

    async def _hear(self) -> None:
        while True:
            await self._hinted.wait()
            # before the claim is due, not after: a hint in between sets it again
            self._hinted.clear()
            self._claim_soon()

    def _claim_soon(self) -> None:
        self._claim_at = float("-inf")
        self._wake.set()

    async def _take_turns(self, group: asyncio.TaskGroup) -> None:
        """Retry until a turn is committed: unsettled deliveries count against the bound, and
        leases fence late ones.
        """
        delays = reconnect_delays(self._jitter)
        ended: list[AttemptResult] = []
        settled_before = False
        while True:
            # before ended attempts are taken, never after: one that ends meanwhile must cause the
            # next turn
            self._wake.clear()
            self._take_ended(ended)
            try:
                pause = await self._turn(group, ended, settled_before=settled_before)
            except psycopg.Error as error:
                # a server that only reads, behind a pooler that lets us in, is no
                # operational error to psycopg
                if (
                    not isinstance(error, psycopg.OperationalError)
                    and failure(error) is not Failure.UNAVAILABLE
                ):
                    raise
                _log.warning("notifier_turn_failed", error=error, count=len(ended))
                # the COMMIT may have succeeded without its answer: the next try must not record
                # tries twice
                settled_before = bool(ended)
                self._claim_soon()
                # what ends meanwhile belongs to the next group: its outcome is known
                await asyncio.sleep(next(delays))
                continue
            delays, settled_before = reconnect_delays(self._jitter), False
            if pause is not None:
                self._claim_at = min(self._claim_at, time.monotonic() + pause)
            if (left := min(self._claim_at, self._attempts.settle_at) - time.monotonic()) > 0:
                await set_within(self._wake, left)

    def _take_ended(self, ended: list[AttemptResult]) -> None:
        """Take ended attempts when it is time to settle them or to claim, unless a group is tried
        again, which stays as it is.
        """
        is_due = self._stopped.is_set() or time.monotonic() >= min(
            self._claim_at, self._attempts.settle_at
        )
        # a group is tried again unchanged: with attempts added, it would not be known whose tries
        # are recorded
        if is_due and not ended:
            ended += self._attempts.take_ended(SETTLE_MAX)

    async def _turn(
        self, group: asyncio.TaskGroup, ended: list[AttemptResult], *, settled_before: bool
    ) -> float | None:
        """Take one turn; `ended` is empty when it is settled.

        Return the seconds until the next claim, unless woken; None: unchanged, as already
        known.
        """
        now = time.monotonic()
        # computed before the claim: an answer that comes during it may forbid what this allows
        # (`refused`)
        offer = self._permits.offer(self._clock.now(), limit=CLAIM_MAX)
        claims = now >= self._claim_at
        # a stopped notifier still takes turns, to settle; it leases nothing more
        may_claim = bool(offer.free) and not self._stopped.is_set()
        turn = Turn(
            worker=self._worker,
            ended=tuple(ended),
            settled_before=settled_before,
            offer=offer if may_claim else None,
            lease_seconds=self._limits.lease_seconds,
            claims=claims,
            # a contracted rate moves due times as it is used, so no earlier answer holds
            asks_due=self._has_rates or now >= min(self._ask_due_at, self._due_at),
        )
        if claims:
            # a hint that comes from here on is for the next turn
            self._claim_at = math.inf
        if not ended and not (claims and may_claim):
            # without a permit: its return wakes us, the sweep is a safety net; None: no claim was
            # due
            return self._sweep_seconds() if claims else None
        # one connection for the turn and what follows from it: a second could wait for a full pool
        # with leases in hand
        async with self._context.pool.connection() as connection:
            with self._context.telemetry.stage(Stage.SETTLE, deliveries=len(ended)):
                done = await take_turn(connection, self._context.keyring, turn)
            failed = any(not _is_delivered(one) for one in ended)
            if failed:
                # what the offer of this turn forbade may be allowed by now, or due at another time
                self._ask_due_at = float("-inf")
            # after the commit: limiter and metrics must not count an attempt twice when a turn is
            # repeated
            self._settled(ended, done)
            deliveries = await self._deliveries(connection, done.claimed)
            if done.claimed is None:
                # settled without a claim: 0 asks again, as a failure moved due times; else as above
                return 0.0 if failed else self._sweep_seconds() if claims else None
            # the limiter lives by the database's clock, as the leases and due times that it is
            # compared with
            self._clock.set(done.claimed.at)
            refused, again = self._attempts.start(group, offer, deliveries)
            found = len(done.claimed.rows)
            self._priority.claimed(found, has_backlog=found == CLAIM_MAX)
            self._context.telemetry.claims.add(
                1, {"queue": "outbox", "fill": _fill(found, full=found == offer.free)}
            )
            # an answer during the claim forbade them; uncharged, and free before their leases end
            if refused:
                await give_back(connection, refused, token=done.claimed.token)
            if any(delivery.has_rate for delivery in deliveries) and not self._has_rates:
                # from now on each turn asks for the due time; this turn may not have
                self._has_rates = True
                return 0.0
        if failed or again:
            return 0.0
        offer = self._permits.offer(self._clock.now(), limit=CLAIM_MAX)
        # before the pause: an attempt that ends during it is settled at once, and its permit
        # claimed for
        self._permits.wait_for(offer)
        self._note_due(done)
        if deliveries:
            await set_within(self._stopped, _SHARED_TURN_SECONDS)
        return self._pause(asked=done.due is not None)

    def _note_due(self, done: TurnResult) -> None:
        if done.due is None:
            return
        now = time.monotonic()
        self._ask_due_at = now + _NEXT_DUE_SECONDS
        # the millisecond: a due time of zero would spin where the claim cannot take what is due
        self._due_at = now + max(0.001, done.due)

    def _pause(self, *, asked: bool) -> float:
        """Return the time until the next turn.

        Where a later due time is stale, at most a second.
        """
        # fresh: only the due time itself matters. Else the knowledge must also be renewed
        until = self._due_at if asked else min(self._due_at, self._ask_due_at)
        retry = self._permits.seconds_until_retry(self._clock.now())
        return max(0.001, min(until - time.monotonic(), retry, self._sweep_seconds()))

    async def _deliveries(
        self, connection: AsyncConnection[Any], claimed: ClaimedRows | None
    ) -> list[Delivery]:
        if claimed is None or not claimed.rows:
            return []
        try:
            return await claimed.deliveries(
                connection, self._context.keyring, thin=frozenset(self._thin)
            )
        # given back first: restoring reads files, and others may send the rest of the claim
        # meanwhile
        except ArchivedHistoryError as error:
            await give_back(connection, claimed.rows, token=claimed.token)
            await self._bring_back(connection, error.shipments)
            self._claim_soon()
            return []

    async def _bring_back(
        self, connection: AsyncConnection[Any], shipments: frozenset[UUID]
    ) -> None:
        try:
            await self._context.archive.restore_shipments(connection, shipments)
        except UnreadableArchiveError as error:
            # one missing file must not hold back the notifications of others
            _log.error("notified_without_history", why=str(error))
            self._thin |= shipments

    def _settled(self, ended: list[AttemptResult], done: TurnResult) -> None:
        if not ended:
            return
        outcomes = Counter(one.answer.outcome for one in ended if one.answer is not None)
        for outcome, attempts in outcomes.items():
            self._context.telemetry.notification_attempts.add(attempts, {"outcome": outcome.value})
        log_notices(self._context.telemetry, done.settled.notices)
        if self._context.waker is not None:
            self._context.waker.wake(LOG)
        for one in ended:
            if (lag := one.delivered_lag_seconds) is not None:
                self._context.telemetry.delivered_lag.record(lag)
            subscription_id = one.delivery.subscription_id
            self._permits.settled(subscription_id, one.end)
            self._attempts.ended.task_done()
            # the offer of the turn did not know of this permit, so its notification was passed over
            if self._permits.wants_more(subscription_id):
                self._claim_soon()
        # in place: `_take_turns` holds this list, and tells by its emptiness whether the group is
        # settled
        ended.clear()

    async def _drain(self) -> None:
        """Let deliveries in flight finish within the grace, then abort them."""
        deadline = time.monotonic() + self._limits.grace_seconds
        self._wake.set()
        await self._attempts.abort(after_seconds=self._limits.grace_seconds * _SENDING_SHARE)
        try:
            async with asyncio.timeout(max(0.1, deadline - time.monotonic())):
                # counts `task_done` of settled attempts, so it returns when a turn has committed
                # all of them
                await self._attempts.ended.join()
        except TimeoutError:
            _log.warning("deliveries_left_unsettled", count=self._attempts.ended.qsize())

    async def _release(self) -> None:
        """Give back the leases of aborted deliveries; if that fails, they are claimed again
        when their leases end.
        """
        tokens = self._attempts.cancelled()
        if not tokens:
            return
        try:
            async with (
                asyncio.timeout(_RELEASE_SECONDS),
                self._context.pool.connection() as connection,
            ):
                await release(connection, tokens)
                await notify(connection, OUTBOX)
        except (psycopg.Error, TimeoutError) as error:
            _log.warning("leases_not_released", error=error)

    def _sweep_seconds(self) -> float:
        if self._context.listener.is_up:
            # spread, so that notifiers do not sweep in step
            return self._limits.sweep_seconds * (0.8 + 0.4 * self._jitter.random())
        return self._jitter.uniform(*_SWEEP_SECONDS_WITHOUT_LISTENER)


def _is_delivered(one: AttemptResult) -> bool:
    answer = one.answer
    return answer is not None and answer.outcome is AttemptOutcome.DELIVERED


def _fill(found: int, *, full: bool) -> str:
    return "full" if full else "partial" if found else "empty"

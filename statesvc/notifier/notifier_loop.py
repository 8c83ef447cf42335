"""The notifier role: claim, send, settle, until stopped.

```
claim, what permits allow --> send, many at once --(gives permits back)--> ended --> settle, in groups
  ^ wake-up, earliest due time, safety sweep        | a permit became free                     | another waited behind, or room
  +-------------------------------------------------+------------------------------------------+
```
The wake-up event is cleared before a claim, never after, so a hint that comes meanwhile survives. A permit is held for as long as its
attempt lasts; deliveries that are claimed and not settled are bounded too, so memory does not grow while the database is away.
"""

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import psycopg
import structlog
from psycopg import AsyncConnection

from statesvc.background.waiting import cancel_fully, set_within
from statesvc.database.wakeups.channels import LOG, OUTBOX
from statesvc.database.wakeups.direct import reconnect_delays
from statesvc.database.wakeups.waker import notify
from statesvc.delivery.limiter.permits import Permits
from statesvc.log.archive.log_archive_errors import ArchivedHistoryError, LogArchiveError
from statesvc.notifier.attempts import Attempts, UnsettledAttempt
from statesvc.notifier.claim_outbox import OutboxClaim, claim, give_back, next_due, release
from statesvc.notifier.context import DatabaseClock, NotifierContext
from statesvc.notifier.housekeeping import BacklogBound, NotifierUpkeep
from statesvc.notifier.limiter_board import LimiterBoard
from statesvc.notifier.policy import log_notices
from statesvc.notifier.settle import Settled, settle
from statesvc.telemetry.stages import Stage

CLAIM_MAX: Final = 64
SETTLE_MAX: Final = 128
_SENDING_SHARE: Final = 0.8
"""Share of the grace for sending; the rest is for settling and releasing."""
_RELEASE_SECONDS: Final = 2.0
_UNHEARD_SWEEP_SECONDS: Final = (0.25, 1.0)

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifierLimits:
    """Bounds of one notifier. The lease outlasts the longest try and its settling."""

    in_flight_max: int = 256
    lease_seconds: float = 45.0
    sweep_seconds: float = 30.0
    grace_seconds: float = 30.0
    backlog: BacklogBound = field(default_factory=BacklogBound)


class Notifier:
    """`run` returns after `stop`, once deliveries in flight are settled or the grace is over."""

    def __init__(self, context: NotifierContext, *, worker: str, limits: NotifierLimits | None = None) -> None:
        self._context = context
        self._worker = worker
        self._limits = limits or NotifierLimits()
        self._wake = context.listener.event(OUTBOX)
        self._stopping = False
        self._permits = Permits(self._limits.in_flight_max)
        self._thin: set[UUID] = set()
        self._attempts = Attempts(context, self._permits, self._wake)
        self._clock = DatabaseClock()
        self._board = LimiterBoard(context, self._permits, self._clock, worker=worker)
        self._board.observe()
        self._attempts.observe()
        self._upkeep = NotifierUpkeep(context, worker=worker, bound=self._limits.backlog, every_seconds=self._limits.sweep_seconds)
        self._jitter = random.Random()  # noqa: S311 - spreads sweeps, guards nothing

    @property
    def in_flight(self) -> int:
        """Deliveries that are claimed and not settled."""
        return self._permits.unsettled

    def stop(self) -> None:
        """Claims no more. Safe to call twice, and before `run`."""
        self._stopping = True
        self._wake.set()
        self._upkeep.stop()

    async def run(self) -> None:
        """Works until stopped. A defect in any of its parts ends it with that exception."""
        try:
            async with asyncio.TaskGroup() as group:
                settling = group.create_task(self._settle_forever(), name="notifier settling")
                upkeep = group.create_task(self._upkeep.run(), name="notifier upkeep")
                group.create_task(self._board.run(), name="notifier limiter board")
                await self._claim_until_stopped(group)
                await self._drain()
                await cancel_fully(settling)
                await cancel_fully(upkeep)
                self._board.stop()
        finally:
            await self._release()

    async def _claim_until_stopped(self, group: asyncio.TaskGroup) -> None:
        delays = reconnect_delays(self._jitter)
        while not self._stopping:
            self._wake.clear()
            try:
                pause = await self._claim(group)
            except psycopg.OperationalError as error:
                _log.warning("outbox_claim_failed", error=error)
                pause = next(delays)
            else:
                delays = reconnect_delays(self._jitter)
            if pause > 0 and not self._stopping:
                await set_within(self._wake, pause)

    async def _claim(self, group: asyncio.TaskGroup) -> float:
        """One claim. Returns for how many seconds there is nothing to do, unless woken."""
        offer = self._permits.offer(self._clock.now(), limit=CLAIM_MAX)
        if not offer.free:
            return self._sweep_seconds()
        async with self._context.pool.connection() as connection:
            asked = OutboxClaim(worker=self._worker, lease_seconds=self._limits.lease_seconds, offer=offer, thin=frozenset(self._thin))
            try:
                deliveries = await claim(connection, self._context.keyring, asked)
            except ArchivedHistoryError as error:
                await self._bring_back(connection, error.shipments)
                return 0.0
            started = self._attempts.start(group, offer, deliveries)
            self._context.telemetry.claims.add(1, {"queue": "outbox", "fill": _fill(len(deliveries), full=len(deliveries) == offer.free)})
            if started.refused:
                await give_back(connection, started.refused)
            if started.again:
                return 0.0
            offer = self._permits.offer(self._clock.now(), limit=CLAIM_MAX)
            self._permits.wait_for(offer)
            at, due = await next_due(connection, offer)
        self._clock.set(at)
        if due is None:
            due = math.inf
        return max(0.001, min(due, self._permits.seconds_until_retry(self._clock.now()), self._sweep_seconds()))

    async def _bring_back(self, connection: AsyncConnection[Any], shipments: frozenset[UUID]) -> None:
        try:
            await self._context.archive.bring_back(connection, shipments)
        except LogArchiveError as error:
            # one missing file must not hold back the notifications of others
            _log.error("notified_without_history", why=str(error))
            self._thin |= shipments

    async def _settle_forever(self) -> None:
        ended = self._attempts.ended
        while True:
            group = [await ended.get()]
            while len(group) < SETTLE_MAX and not ended.empty():
                group.append(ended.get_nowait())
            self._count(group)
            settled = await self._settle(group)
            log_notices(self._context.telemetry, settled.notices)
            if self._context.waker is not None:
                self._context.waker.wake(LOG)
            if settled.unblocked or settled.rescheduled:
                self._wake.set()
            for one in group:
                self._make_room(one)

    def _count(self, group: Sequence[UnsettledAttempt]) -> None:
        outcomes = Counter(one.result.answer.outcome for one in group if one.result.answer is not None)
        for outcome, attempts in outcomes.items():
            self._context.telemetry.notification_attempts.add(attempts, {"outcome": outcome.value})
        for lag in (one.result.delivered_lag_seconds for one in group):
            if lag is not None:
                self._context.telemetry.delivered_lag.record(lag)

    def _make_room(self, one: UnsettledAttempt) -> None:
        subscription_id = one.result.delivery.subscription_id
        self._permits.settled(subscription_id, one.end)
        self._attempts.ended.task_done()
        if self._permits.wants_more(subscription_id):
            self._wake.set()

    async def _settle(self, group: Sequence[UnsettledAttempt]) -> Settled:
        """Retries until it is committed: unsettled deliveries count against the bound, and leases fence late ones."""
        again, results = False, [one.result for one in group]
        for delay in reconnect_delays(self._jitter):
            try:
                async with self._context.pool.connection() as connection:
                    with self._context.telemetry.stage(Stage.SETTLE, deliveries=len(group)):
                        return await settle(connection, self._context.keyring, results, worker=self._worker, again=again)
            except psycopg.OperationalError as error:
                _log.warning("deliveries_not_settled", error=error, count=len(group))
                again = True
                await asyncio.sleep(delay)
        raise AssertionError("reconnect delays never end")

    async def _drain(self) -> None:
        """Lets deliveries in flight finish within the grace, then aborts them."""
        deadline = time.monotonic() + self._limits.grace_seconds
        await self._attempts.abort(after_seconds=self._limits.grace_seconds * _SENDING_SHARE)
        try:
            async with asyncio.timeout(max(0.1, deadline - time.monotonic())):
                await self._attempts.ended.join()
        except TimeoutError:
            _log.warning("deliveries_left_unsettled", count=self._attempts.ended.qsize())

    async def _release(self) -> None:
        """Gives back the leases of aborted deliveries; if that fails, they are claimed again when their leases end."""
        tokens = self._attempts.cancelled()
        if not tokens:
            return
        try:
            async with asyncio.timeout(_RELEASE_SECONDS), self._context.pool.connection() as connection:
                await release(connection, tokens)
                await notify(connection, OUTBOX)
        except (psycopg.Error, TimeoutError) as error:
            _log.warning("leases_not_released", error=error)

    def _sweep_seconds(self) -> float:
        if self._context.listener.is_up:
            return self._limits.sweep_seconds * (0.8 + 0.4 * self._jitter.random())
        return self._jitter.uniform(*_UNHEARD_SWEEP_SECONDS)


def _fill(found: int, *, full: bool) -> str:
    return "full" if full else "partial" if found else "empty"

"""The notifier role: claim, send, settle, until stopped.

```
claim --(takes slots)--> send, many at once --> finished --> settle, in groups --(gives slots back)
  ^ wake-up, earliest due time, safety sweep                          | a slot became free, or somebody waited behind
  +-------------------------------------------------------------------+
```
The wake-up event is cleared before a claim, never after, so a hint that comes meanwhile survives. Slots are held until a delivery is
settled: while the database is away nothing is claimed and nothing piles up in memory.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg
import structlog
from psycopg import AsyncConnection

from events.keyring import Keyring
from events.sql.queries import queries
from statesvc.database.pool import Pool
from statesvc.notifier.body import body_of
from statesvc.notifier.claim import Claim, Delivery, claim, purge, release, seconds_until_due
from statesvc.notifier.evidence import Finished
from statesvc.notifier.outcome import Outcome
from statesvc.notifier.schedule import ATTEMPTS_MAX
from statesvc.notifier.sending import Answer, Sender
from statesvc.notifier.settle import Settled, settle
from statesvc.notifier.signing import signed_headers
from statesvc.notifier.slots import Slots
from statesvc.subscriptions.secret import live
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.names import Stage
from statesvc.telemetry.tracing import span
from statesvc.wakeup.cancellation import cancel_fully
from statesvc.wakeup.channels import LOG, OUTBOX
from statesvc.wakeup.direct import reconnect_delays
from statesvc.wakeup.listener import Listener
from statesvc.wakeup.waker import Waker

CLAIM_MAX: Final = 64
SETTLE_MAX: Final = 128
_SENDING_SHARE: Final = 0.8
"""Of the grace; the rest is for settling and releasing."""
_RELEASE_SECONDS: Final = 2.0
_DEAF_SWEEP_SECONDS: Final = (0.25, 1.0)

_WAKE = queries("statesvc.wakeup", "wakeup")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one notifier. The lease outlasts the longest try and its settling."""

    in_flight_max: int = 256
    lease_seconds: float = 45.0
    sweep_seconds: float = 30.0
    grace_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the composition root hands to the notifier. The sender is open as long as the notifier runs."""

    pool: Pool
    keyring: Keyring
    listener: Listener
    telemetry: Telemetry
    sender: Sender
    waker: Waker | None = None
    """Tells the sealer that attempts were recorded; without it they are sealed at its next round."""


class Notifier:
    """`run` returns after `stop`, when what was in flight is settled or the grace is over."""

    def __init__(self, surroundings: Surroundings, *, worker: str, limits: Limits | None = None) -> None:
        self._around = surroundings
        self._worker = worker
        self._limits = limits or Limits()
        self._wake = surroundings.listener.event(OUTBOX)
        self._stopping = False
        self._slots = Slots(self._limits.in_flight_max)
        self._sending: dict[asyncio.Task[None], UUID] = {}
        self._finished: asyncio.Queue[Finished] = asyncio.Queue()
        self._jitter = random.Random()  # noqa: S311 - spreads sweeps, guards nothing
        self._next_purge = 0.0

    @property
    def in_flight(self) -> int:
        """Deliveries that are claimed and not settled."""
        return self._limits.in_flight_max - self._slots.free

    def stop(self) -> None:
        """Claims no more. Safe to call twice, and before `run`."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Works until stopped. A defect in any of its parts ends it with that exception."""
        try:
            async with asyncio.TaskGroup() as group:
                settling = group.create_task(self._settle_forever(), name="notifier settling")
                await self._claim_until_stopped(group)
                await self._drain()
                await cancel_fully(settling)
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
                await self._sleep(pause)

    async def _claim(self, group: asyncio.TaskGroup) -> float:
        """One claim. Returns for how many seconds there is nothing to do, unless woken."""
        limit = min(self._slots.free, CLAIM_MAX)
        if limit <= 0:
            return self._sweep_seconds()
        async with self._around.pool.connection() as connection:
            await self._purge_sometimes(connection)
            busy = self._slots.busy
            asked = Claim(worker=self._worker, limit=limit, lease_seconds=self._limits.lease_seconds, share=self._slots.share, busy=busy)
            deliveries = await claim(connection, self._around.keyring, asked)
            self._start(group, deliveries)
            # what was settled during the claim may have made room that the claim did not know of
            full = len(deliveries) == limit or self._slots.cut_short(Counter(d.subscription_id for d in deliveries), busy)
            self._around.telemetry.claims.add(1, {"queue": "outbox", "fill": _fill(len(deliveries), full=full)})
            if full:
                return 0.0
            due = await seconds_until_due(connection)
        sweep = self._sweep_seconds()
        return sweep if due is None else min(sweep, max(due, 0.001))

    def _start(self, group: asyncio.TaskGroup, deliveries: list[Delivery]) -> None:
        claimed = time.monotonic()
        for delivery in deliveries:
            self._slots.take(delivery.subscription_id)
            task = group.create_task(self._deliver(delivery, claimed), name=f"notifier delivery {delivery.notification.webhook_id}")
            self._sending[task] = delivery.token

    async def _deliver(self, delivery: Delivery, claimed: float) -> None:
        """Sends one notification. Its slot and its lease are held until it is settled."""
        telemetry = self._around.telemetry
        started_at = delivery.claimed_at + timedelta(seconds=time.monotonic() - claimed)
        body = body_of(delivery.notification)
        answer: Answer | None = None
        if delivery.attempts <= ATTEMPTS_MAX:
            telemetry.deliveries_in_flight.add(1)
            try:
                with span(telemetry.tracer, Stage.DELIVER, {"webhook_id": delivery.notification.webhook_id, "attempt": delivery.attempts}):
                    answer = await self._send(delivery, started_at, body)
            finally:
                telemetry.deliveries_in_flight.add(-1)
            telemetry.notification_attempts.add(1, {"outcome": answer.outcome.value})
            telemetry.delivery_duration.record(answer.duration_seconds, {"outcome": answer.outcome.value})
        self._finished.put_nowait(Finished(delivery=delivery, answer=answer, started_at=started_at, body=body))
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine of a task group runs in a task
        del self._sending[task]

    async def _send(self, delivery: Delivery, started_at: datetime, body: bytes) -> Answer:
        secrets = live(delivery.secrets, started_at)
        if not secrets:
            return Answer(outcome=Outcome.UNSIGNED, duration_seconds=0.0)
        # the receiver compares this with its own clock: wall time, not the database's
        timestamp = int(datetime.now(UTC).timestamp())
        headers = signed_headers(secrets, webhook_id=delivery.notification.webhook_id, timestamp=timestamp, body=body)
        return await self._around.sender.send(delivery.url, headers=headers, body=body)

    async def _settle_forever(self) -> None:
        while True:
            group = [await self._finished.get()]
            while len(group) < SETTLE_MAX and not self._finished.empty():
                group.append(self._finished.get_nowait())
            settled = await self._settle(group)
            if self._around.waker is not None:
                self._around.waker.wake(LOG)
            was_exhausted = self._slots.exhausted
            for finished in group:
                self._slots.give(finished.delivery.subscription_id)
                self._finished.task_done()
            if was_exhausted or settled.unblocked or settled.rescheduled:
                self._wake.set()

    async def _settle(self, group: list[Finished]) -> Settled:
        """Until it is committed: its slots are held meanwhile, and the leases fence what takes too long."""
        again = False
        for delay in reconnect_delays(self._jitter):
            try:
                async with self._around.pool.connection() as connection:
                    with self._around.telemetry.stage(Stage.SETTLE, deliveries=len(group)):
                        return await settle(connection, self._around.keyring, group, worker=self._worker, again=again)
            except psycopg.OperationalError as error:
                _log.warning("deliveries_not_settled", error=error, count=len(group))
                again = True
                await asyncio.sleep(delay)
        raise AssertionError("reconnect delays never end")

    async def _drain(self) -> None:
        """Lets what is in flight finish within the grace, then aborts it."""
        deadline = time.monotonic() + self._limits.grace_seconds
        sending = list(self._sending)
        if sending:
            await asyncio.wait(sending, timeout=self._limits.grace_seconds * _SENDING_SHARE)
            for task in sending:
                task.cancel()
        try:
            async with asyncio.timeout(max(0.1, deadline - time.monotonic())):
                await self._finished.join()
        except TimeoutError:
            _log.warning("deliveries_left_unsettled", count=self._finished.qsize())

    async def _release(self) -> None:
        """Gives back the leases of what was aborted; what can't be given back now comes back when its lease ends."""
        tokens = set(self._sending.values())
        self._sending.clear()
        if not tokens:
            return
        try:
            async with asyncio.timeout(_RELEASE_SECONDS), self._around.pool.connection() as connection:
                await release(connection, tokens)
                await connection.execute(_WAKE["notify"], {"channels": [OUTBOX]})
        except (psycopg.Error, TimeoutError) as error:
            _log.warning("leases_not_released", error=error)

    async def _purge_sometimes(self, connection: AsyncConnection[Any]) -> None:
        if time.monotonic() >= self._next_purge:
            self._next_purge = time.monotonic() + self._limits.sweep_seconds
            await purge(connection)

    def _sweep_seconds(self) -> float:
        if self._around.listener.is_up:
            return self._limits.sweep_seconds * (0.8 + 0.4 * self._jitter.random())
        return self._jitter.uniform(*_DEAF_SWEEP_SECONDS)

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()


def _fill(found: int, *, full: bool) -> str:
    return "full" if full else "partial" if found else "empty"

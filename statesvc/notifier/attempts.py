"""The attempts in progress: each is a task that holds a permit for as long as its request lasts."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from statesvc.delivery.limiter.permits import Offer, Permits
from statesvc.delivery.limiter.signal import pause_asked_for, signal_of
from statesvc.delivery.limiter.subscription_limiter import AttemptEnd, Permit
from statesvc.delivery.notification import body_of
from statesvc.delivery.outcome import Answer, AttemptOutcome
from statesvc.delivery.outgoing import Outgoing
from statesvc.delivery.retry_schedule import ATTEMPTS_MAX
from statesvc.delivery.signing import signed_headers
from statesvc.notifier.claim_outbox import Delivery
from statesvc.notifier.context import NotifierContext
from statesvc.subscriptions.subscription_secrets import live
from statesvc.telemetry import gauges
from statesvc.telemetry.metric import Stage
from statesvc.telemetry.tracing import TRACEPARENT, span, traceparent_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """A delivery with its outcome, and `end`, its outcome for the limiter.

    Without an answer it was not tried: too many attempts ended without a verdict, it is
    `expired`, too old for its type, or its news is too old for its subscription.
    """

    delivery: Delivery
    answer: Answer | None
    started_at: datetime
    body: bytes = field(repr=False)
    expired: bool = False
    end: AttemptEnd | None = None

    @property
    def delivered_lag_seconds(self) -> float | None:
        """Time from the carrier's ACK to the subscriber's; None: not delivered, or no message
        caused it.
        """
        received_at = self.delivery.received_at
        if (
            received_at is None
            or self.answer is None
            or self.answer.outcome is not AttemptOutcome.DELIVERED
        ):
            return None
        return max(
            0.0, (self.started_at - received_at).total_seconds() + self.answer.duration_seconds
        )


class Attempts:
    """Attempts of a notifier. `wake` is set at each end.

    `ended` receives finished attempts, to be settled until `settle_at`.
    """

    def __init__(
        self,
        context: NotifierContext,
        permits: Permits,
        wake: asyncio.Event,
        *,
        settle_within_seconds: float,
    ) -> None:
        # without a bound of its own: permits are returned to the offer only when settled
        self.ended: asyncio.Queue[AttemptResult] = asyncio.Queue()
        self.settle_at = math.inf
        """On the monotonic clock."""
        self._context = context
        self._permits = permits
        self._wake = wake
        self._settle_within_seconds = settle_within_seconds
        self._sending: dict[asyncio.Task[None], UUID] = {}
        self._claim = 0
        """Number of the last claim."""

    def start(
        self, group: asyncio.TaskGroup, offer: Offer, deliveries: Sequence[Delivery]
    ) -> tuple[list[Delivery], bool]:
        """Start the deliveries of a claim; return those that an answer which came during the claim
        forbids, and whether another claim may find more at once.
        """
        # attempts start at the database's time of the claim plus what passed here: no second clock
        # is read
        claimed, refused = time.monotonic(), []
        self._claim += 1
        found, found_retries = Counter[UUID](), Counter[UUID]()
        for delivery in deliveries:
            subscription_id, is_retry = delivery.subscription_id, delivery.attempts > 1
            found[subscription_id] += 1
            found_retries[subscription_id] += is_retry
            # taken before the task exists: two deliveries must not see the same free permit
            permit = self._permits.take(
                subscription_id, delivery.claimed_at.timestamp(), is_retry=is_retry
            )
            if permit is None:
                refused.append(delivery)
                continue
            attempt = self._attempt(delivery, permit, claimed, self._claim)
            task = group.create_task(
                attempt, name=f"notifier delivery {delivery.notification.webhook_id}"
            )
            # also keeps the task alive, and `cancelled` reads from it which leases to give back
            self._sending[task] = delivery.token
            # a replay or a retry would count the wait for itself
            if delivery.attempts == 1 and not delivery.earlier_attempts:
                self._note_lag(delivery)
        return refused, self._permits.claimed(offer, found=found, found_retries=found_retries)

    def observe(self) -> None:
        """Make the metrics read how many are in progress."""
        self._context.telemetry.observe(
            gauges.DELIVERIES_IN_FLIGHT, lambda: [(float(len(self._sending)), {})]
        )

    async def abort(self, *, after_seconds: float) -> None:
        """Wait until then for attempts in progress, and cancel the rest."""
        sending = list(self._sending)
        if sending:
            await asyncio.wait(sending, timeout=after_seconds)
            for task in sending:
                task.cancel()

    def cancelled(self) -> set[UUID]:
        """Return the leases of attempts that were cancelled."""
        tokens = set(self._sending.values())
        self._sending.clear()
        return tokens

    def _note_lag(self, delivery: Delivery) -> None:
        limited = delivery.has_rate or self._permits.is_limited(delivery.subscription_id)
        lag = (delivery.claimed_at - delivery.notification.created_at).total_seconds()
        self._context.telemetry.first_attempt_lag.record(
            max(0.0, lag), {"state": "limited" if limited else "ready"}
        )

    async def _attempt(
        self, delivery: Delivery, permit: Permit, claimed: float, claim: int
    ) -> None:
        started_at = delivery.claimed_at + timedelta(seconds=time.monotonic() - claimed)
        body = body_of(delivery.notification)
        # here, not in the claim: it may have become too old while it waited for its permit
        expired = delivery.gives_up_at is not None and started_at >= delivery.gives_up_at
        answer = (
            None
            if expired or delivery.is_too_old or delivery.attempts > ATTEMPTS_MAX
            else await self._answer(delivery, started_at, body)
        )
        end = (
            None
            if answer is None
            else _end(answer, at=started_at.timestamp() + answer.duration_seconds)
        )
        # before the attempt is queued for settling: the next offer may already use the permit
        self._permits.give(delivery.subscription_id, permit, end)
        ended = AttemptResult(
            delivery=delivery,
            answer=answer,
            started_at=started_at,
            body=body,
            expired=expired,
            end=end,
        )
        self.ended.put_nowait(ended)
        self._settle_within(
            0.0 if self._is_waited_for(ended, claim) else self._settle_within_seconds
        )
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine of a task group runs in a task
        # as the last step: until then the drain waits for it
        del self._sending[task]

    def take_ended(self, at_most: int) -> list[AttemptResult]:
        """Return those that have ended; when there are more, they are to be settled at once."""
        taken = [self.ended.get_nowait() for _ in range(min(at_most, self.ended.qsize()))]
        self.settle_at = math.inf
        if not self.ended.empty():
            self._settle_within(0.0)
        return taken

    def _settle_within(self, seconds: float) -> None:
        self.settle_at = min(self.settle_at, time.monotonic() + seconds)
        self._wake.set()

    def _is_waited_for(self, ended: AttemptResult, claim: int) -> bool:
        """Return whether a claim may find more once this is settled: behind it, a claim since its
        own may have passed over something.
        """
        answer, delivery = ended.answer, ended.delivery
        delivered = answer is not None and answer.outcome is AttemptOutcome.DELIVERED
        return (
            # a failure moves due times and may open the breaker; a follower and a permit wait for
            # the settling
            not delivered
            or delivery.has_followers
            or claim != self._claim
            or self._permits.wants_more(delivery.subscription_id)
        )

    async def _answer(self, delivery: Delivery, started_at: datetime, body: bytes) -> Answer:
        telemetry = self._context.telemetry
        attributes: dict[str, str | int] = {
            "webhook_id": delivery.notification.webhook_id,
            "attempt": delivery.attempts,
        }
        with span(telemetry.tracer, Stage.DELIVER, attributes, parent=delivery.traceparent):
            answer = await self._send(delivery, started_at, body)
        telemetry.delivery_duration.record(
            answer.duration_seconds, {"outcome": answer.outcome.value}
        )
        return answer

    async def _send(self, delivery: Delivery, started_at: datetime, body: bytes) -> Answer:
        secrets = live(delivery.secrets, started_at)
        # a notification without signature could not be told from a forged one
        if not secrets:
            return Answer(outcome=AttemptOutcome.UNSIGNED, duration_seconds=0.0)
        # the receiver compares this with its own clock: a machine whose clock is wrong must not
        # have all of its deliveries refused
        timestamp = int(started_at.timestamp())
        notification = delivery.notification
        headers = signed_headers(
            secrets,
            webhook_id=notification.webhook_id,
            timestamp=timestamp,
            body=body,
            older=delivery.older,
        )
        if (traceparent := traceparent_of()) is not None:
            headers[TRACEPARENT] = traceparent
        outgoing = Outgoing(
            webhook_id=notification.webhook_id,
            type=notification.type,
            at=notification.created_at,
            subject=str(delivery.shipment_id),
            sequence=delivery.sequence,
            body=body,
            headers=headers,
        )
        return await self._context.targets.send(delivery.destination, outgoing)


def _end(answer: Answer, *, at: float) -> AttemptEnd:
    return AttemptEnd(
        signal=signal_of(answer.outcome, answer.status_code),
        at=at,
        latency_seconds=answer.duration_seconds,
        asks_to_wait=pause_asked_for(answer.status_code, answer.retry_after_seconds) is not None,
    )

"""The notifier's loop in virtual time: claims, attempts and settling cost what they cost, the
limiter is the real one.
"""

import heapq
import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import UUID

from statesvc.delivery.limiter.concurrency import CohortMark
from statesvc.delivery.limiter.permits import Offer
from statesvc.delivery.limiter.signal import signal_of
from statesvc.delivery.limiter.subscription_limiter import Allowance, AttemptEnd, Permit
from statesvc.delivery.outcome import AttemptOutcome, outcome_of
from statesvc.delivery.retry_schedule import next_delay_seconds
from tests.simulation.happenings import Events
from tests.simulation.receivers import Behaviour, Reply

CLAIM_SECONDS: Final = 0.004
SETTLE_SECONDS: Final = 0.006
CLAIM_MAX: Final = 64


class Limiting(Protocol):
    """Interface of a limiter to the loop."""

    def offer(self, now: float, *, limit: int) -> Offer: ...

    def take(self, subscription_id: UUID, now: float, *, is_retry: bool) -> Permit | None: ...

    def give(self, subscription_id: UUID, permit: Permit, end: AttemptEnd | None) -> None: ...

    def settled(self, subscription_id: UUID, end: AttemptEnd | None) -> None: ...

    def claimed(
        self, offer: Offer, *, found: Counter[UUID], found_retries: Counter[UUID]
    ) -> bool: ...

    def seconds_until_retry(self, now: float) -> float: ...


class Fixed:
    """A hand-tuned limit: always the same, whatever comes back."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._busy: Counter[UUID] = Counter()

    # it is the same at all times
    def offer(self, now: float, *, limit: int) -> Offer:  # noqa: ARG002
        known = {
            one: Allowance(free=self._limit - busy, retries=self._limit - busy)
            for one, busy in self._busy.items()
        }
        return Offer(
            free=limit,
            retries=limit,
            fresh=Allowance(free=self._limit, retries=self._limit),
            known=known,
        )

    def take(self, subscription_id: UUID, now: float, *, is_retry: bool) -> Permit | None:
        self._busy[subscription_id] += 1
        return Permit(
            is_retry=is_retry, is_probe=False, started_at=now, mark=CohortMark(0, counts=False)
        )

    # it learns nothing
    def give(self, subscription_id: UUID, permit: Permit, end: AttemptEnd | None) -> None:  # noqa: ARG002
        self._busy[subscription_id] -= 1

    def settled(self, subscription_id: UUID, end: AttemptEnd | None) -> None:
        pass

    def claimed(self, offer: Offer, *, found: Counter[UUID], found_retries: Counter[UUID]) -> bool:  # noqa: ARG002
        return found.total() >= offer.free

    def seconds_until_retry(self, now: float) -> float:  # noqa: ARG002 - it has no budget
        return math.inf


@dataclass
class Subscriber:
    """One receiver, what waits for it, and what was seen of it."""

    behaviour: Behaviour
    first: list[tuple[float, int]] = field(default_factory=list)
    """(created at, attempts so far), the oldest first; consumed from `_next`."""
    retries: list[tuple[float, int, float]] = field(default_factory=list)
    """A heap of (due at, attempts so far, created at)."""
    in_flight: int = 0
    peak: int = 0
    delivered_at: list[float] = field(default_factory=list)
    statuses: Counter[int | None] = field(default_factory=Counter)
    started: list[tuple[float, int]] = field(default_factory=list)
    """(time, in flight) at each start: the curve."""
    first_waits: list[float] = field(default_factory=list)
    not_before: float = -math.inf
    next_first: int = 0

    def throughput(self, since: float, until: float) -> float:
        """Return notifications taken a second."""
        return (bisect_left(self.delivered_at, until) - bisect_left(self.delivered_at, since)) / (
            until - since
        )

    @property
    def waiting(self) -> int:
        return len(self.first) - self.next_first + len(self.retries)


class Notifier:
    """Claims for all subscribers until the simulation ends."""

    def __init__(
        self, events: Events, limiting: Limiting, subscribers: Mapping[UUID, Subscriber]
    ) -> None:
        self._events = events
        self._limiting = limiting
        self._subscribers = subscribers
        self._claiming = False
        self._wanted = False
        self._timer = math.inf

    def put(self, subscription_id: UUID) -> None:
        """Put one more notification for it."""
        self._subscribers[subscription_id].first.append((self._events.now, 0))
        self.wake()

    def wake(self) -> None:
        if self._claiming:
            self._wanted = True
            return
        self._claiming = True
        self._wanted = False
        offer = self._limiting.offer(self._events.now, limit=CLAIM_MAX)
        self._events.after(CLAIM_SECONDS, lambda: self._claimed(offer))

    def _claimed(self, offer: Offer) -> None:
        now, left, retries_left = self._events.now, offer.free, offer.retries
        found, found_retries = Counter[UUID](), Counter[UUID]()
        due = math.inf
        for subscription_id, subscriber in self._subscribers.items():
            allowance = offer.known.get(subscription_id, offer.fresh)
            ready_at = max(subscriber.not_before, allowance.not_before or -math.inf)
            if ready_at > now:
                due = min(due, ready_at) if subscriber.waiting else due
                continue
            retried = 0
            while (
                subscriber.retries
                and subscriber.retries[0][0] <= now
                and retried < min(allowance.retries, retries_left, left)
            ):
                _, attempts, created_at = heapq.heappop(subscriber.retries)
                retried += self._start(subscription_id, attempts + 1, created_at)
            started = retried
            while subscriber.next_first < len(subscriber.first) and started < min(
                allowance.free, left
            ):
                created_at, _ = subscriber.first[subscriber.next_first]
                subscriber.next_first += 1
                subscriber.first_waits.append(now - created_at)
                started += self._start(subscription_id, 1, created_at)
            left -= started
            retries_left -= retried
            found[subscription_id], found_retries[subscription_id] = started, retried
            if subscriber.retries and subscriber.retries[0][0] > now:
                due = min(due, subscriber.retries[0][0])
        again = self._limiting.claimed(offer, found=found, found_retries=found_retries)
        self._claiming = False
        if self._wanted or again:
            self.wake()
        else:
            self._wake_at(min(due, now + self._limiting.seconds_until_retry(now)))

    def _wake_at(self, due: float) -> None:
        if math.isinf(due) or (self._events.now < self._timer <= due):
            return
        self._timer = due
        self._events.after(max(0.001, due - self._events.now), self.wake)

    def _start(self, subscription_id: UUID, attempts: int, created_at: float) -> bool:
        subscriber, now = self._subscribers[subscription_id], self._events.now
        permit = self._limiting.take(subscription_id, now, is_retry=attempts > 1)
        if permit is None:
            heapq.heappush(subscriber.retries, (now, attempts - 1, created_at))
            return False
        subscriber.in_flight += 1
        subscriber.peak = max(subscriber.peak, subscriber.in_flight)
        subscriber.started.append((now, subscriber.in_flight))
        reply = subscriber.behaviour.reply(now, subscriber.in_flight)
        self._events.after(
            reply.after_seconds,
            lambda: self._answered(subscription_id, permit, reply, attempts, created_at),
        )
        return True

    def _answered(
        self, subscription_id: UUID, permit: Permit, reply: Reply, attempts: int, created_at: float
    ) -> None:
        subscriber, now = self._subscribers[subscription_id], self._events.now
        outcome = AttemptOutcome.TIMED_OUT if reply.status is None else outcome_of(reply.status)
        waits = reply.retry_after_seconds is not None
        subscriber.in_flight -= 1
        subscriber.statuses[reply.status] += 1
        end = AttemptEnd(
            signal=signal_of(outcome, reply.status),
            at=now,
            latency_seconds=now - permit.started_at,
            asks_to_wait=waits,
        )
        self._limiting.give(subscription_id, permit, end)

        def settle() -> None:
            self._limiting.settled(subscription_id, end)
            if outcome is AttemptOutcome.DELIVERED:
                insort(subscriber.delivered_at, now)
            else:
                delay = next_delay_seconds(
                    attempts, retry_after_seconds=reply.retry_after_seconds, jitter=0.5
                )
                if delay is not None:
                    heapq.heappush(subscriber.retries, (now + delay, attempts, created_at))
            if reply.retry_after_seconds is not None:
                subscriber.not_before = max(subscriber.not_before, now + reply.retry_after_seconds)
            self.wake()

        self._events.after(SETTLE_SECONDS, settle)
        self.wake()

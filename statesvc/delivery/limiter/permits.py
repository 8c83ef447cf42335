"""All limiters of a process, under its bound.

A subscription holds at most a quarter, so three that hang leave room for the others; retries hold
at most two fifths, so that new notifications never wait behind them.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from statesvc.delivery.limiter.subscription_limiter import (
    FRESH,
    RETRY_SHARE,
    Allowance,
    AttemptEnd,
    LimiterState,
    Permit,
    SubscriptionLimiter,
)

# A limiter idle for longer starts afresh: its knowledge is too old.
FORGOTTEN_AFTER_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Bounds of a claim: `free` in all, of them `retries`; of a subscription that
    is not named, `fresh`.
    """

    free: int
    retries: int
    fresh: Allowance
    known: Mapping[UUID, Allowance]


class Permits:
    """`total` in flight or unsettled at most, of which a quarter (at least one) for one
    subscription.
    """

    def __init__(self, total: int) -> None:
        if total < 1:
            raise ValueError(f"the in-flight bound is at least 1, not {total}")
        self.share = max(1, total // 4)
        self._total = total
        self._retries_max = max(1, int(total * RETRY_SHARE))
        self._unsettled = 0
        self._retries = 0
        self._wants_more = False
        """The last claim ended at the bound of the process, not at that of a subscription."""
        self._limiters: dict[UUID, SubscriptionLimiter] = {}

    @property
    def unsettled(self) -> int:
        """Claimed, and not settled."""
        return self._unsettled

    def offer(self, now: float, *, limit: int) -> Offer:
        """Return the offer to the next claim, at most `limit`."""
        fresh = Allowance(free=min(FRESH.free, self.share), retries=FRESH.retries)
        known = {
            subscription_id: limiter.allowance(now)
            for subscription_id, limiter in self._limiters.items()
        }
        return Offer(
            free=max(0, min(limit, self._total - self._unsettled)),
            retries=max(0, self._retries_max - self._retries),
            fresh=fresh,
            known={
                subscription_id: allowance
                for subscription_id, allowance in known.items()
                # most are: the claim's arrays hold only what differs
                if allowance != fresh
            },
        )

    def take(self, subscription_id: UUID, now: float, *, is_retry: bool) -> Permit | None:
        """Take a permit for one that was claimed; None: it may not be sent after all, give it
        back.
        """
        limiter = self._limiters.get(subscription_id)
        if limiter is None:
            limiter = self._limiters[subscription_id] = SubscriptionLimiter(self.share)
        permit = limiter.take(now, is_retry=is_retry)
        if permit is not None:
            # until it is settled, not until it ends: what waits to be settled is in memory, too
            self._unsettled += 1
            self._retries += permit.is_retry
        return permit

    def give(self, subscription_id: UUID, permit: Permit, end: AttemptEnd | None) -> None:
        """Return a permit: the attempt ended; None: it was never made, or broken off."""
        self._retries -= permit.is_retry
        self._limiters[subscription_id].give(permit, end)

    def settled(self, subscription_id: UUID, end: AttemptEnd | None) -> None:
        """Note that the outcome is committed."""
        self._unsettled -= 1
        self._limiters[subscription_id].settled(end)

    def is_limited(self, subscription_id: UUID) -> bool:
        """Return whether what it is sent now may have waited for the receiver: for a permit, its
        breaker, or a pause that it asked for.
        """
        limiter = self._limiters.get(subscription_id)
        return limiter is not None and limiter.is_limited

    def wants_more(self, subscription_id: UUID) -> bool:
        """Return whether the last claim may have left something that may be sent now
        that an attempt has ended.
        """
        limiter = self._limiters.get(subscription_id)
        return self._wants_more or (
            limiter is not None and (limiter.wants_more or limiter.withheld_retries)
        )

    def claimed(self, offer: Offer, *, found: Counter[UUID], found_retries: Counter[UUID]) -> bool:
        """Note a claim's result, after its permits were taken. True: claim again at once."""
        full = found.total() >= offer.free
        self._wants_more = full or (self._retries > 0 and found_retries.total() >= offer.retries)
        passed = [
            # every limiter, also of those that got nothing: an empty share may be why
            limiter.claimed(
                offer.known.get(one, offer.fresh),
                found=found[one],
                found_retries=found_retries[one],
            )
            for one, limiter in self._limiters.items()
        ]
        return any(passed) or (full and offer.free > 0)

    def wait_for(self, offer: Offer) -> None:
        """Claim for subscriptions without a share of this offer as soon as a permit is free."""
        for one, allowance in offer.known.items():
            # the claim did not look for these at all, so nothing else tells that something may wait
            if not allowance.free:
                self._limiters[one].wants_more = True

    def seconds_until_retry(self, now: float) -> float:
        """Return the seconds until a budget allows another retry; infinite: none is held back."""
        waits = [
            wait
            for limiter in self._limiters.values()
            if (wait := limiter.seconds_until_retry(now)) > 0
        ]
        return min(waits, default=math.inf)

    def forget_idle(self, now: float) -> list[UUID]:
        """Drop limiters that were idle for long; return their subscriptions."""
        since = now - FORGOTTEN_AFTER_SECONDS
        idle = [
            subscription_id
            for subscription_id, limiter in self._limiters.items()
            if limiter.is_idle(since)
        ]
        for subscription_id in idle:
            # it starts afresh: what it learned ten minutes ago is no measure of the receiver now
            del self._limiters[subscription_id]
        return idle

    def states(self) -> dict[UUID, LimiterState]:
        return {
            subscription_id: limiter.state for subscription_id, limiter in self._limiters.items()
        }

"""The limiter of a subscription: the present allowance, and the effect of each answer."""

from dataclasses import dataclass, field
from typing import Final

from statesvc.delivery.limiter.circuit_breaker import BreakerState, CircuitBreaker
from statesvc.delivery.limiter.concurrency import CohortMark, Concurrency
from statesvc.delivery.limiter.signal import Signal

# Retries that each first attempt allows.
RETRIES_SHARE: Final = 0.2
FLOOR_PER_SECOND: Final = 10.0
# Retries that may follow each other at once after a quiet time.
BALANCE_MAX: Final = 20.0


class RetryBudget:
    """Bounds failing retries: a fifth of the first attempts, plus ten a second.

    A receiver that starts to fail would otherwise get every notification several times, just when
    it can take least. A retry that succeeds is refunded: once the receiver is well again, its
    backlog goes out as fast as it can take it.
    """

    def __init__(self) -> None:
        self._balance = BALANCE_MAX
        self._counted_at: float | None = None

    def available(self, now: float) -> int:
        self._accrue(now)
        return int(self._balance)

    def seconds_until_next(self, now: float) -> float:
        """Return the seconds until another retry may start without a first attempt; 0: now."""
        self._accrue(now)
        return max(0.0, (1.0 - self._balance) / FLOOR_PER_SECOND)

    def first(self) -> None:
        self._balance = min(BALANCE_MAX, self._balance + RETRIES_SHARE)

    def retry(self, now: float) -> None:
        """Note that a retry starts.

        Never refused: claimed retries are honoured, the next claim waits.
        """
        self._accrue(now)
        self._balance -= 1.0

    def taken(self) -> None:
        self._balance = min(BALANCE_MAX, self._balance + 1.0)

    def _accrue(self, now: float) -> None:
        if self._counted_at is not None and now > self._counted_at:
            self._balance = min(
                BALANCE_MAX, self._balance + FLOOR_PER_SECOND * (now - self._counted_at)
            )
        self._counted_at = now


# Share of the permits for retries, at most; the rest is for first attempts.
RETRY_SHARE: Final = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Bounds of a claim: `free` notifications, at most `retries` of them tried before,
    none before `not_before`.

    `in_flight`: how many there are already; the fewer, the sooner it is its turn.
    """

    free: int
    retries: int
    in_flight: int = 0
    not_before: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """The right to one attempt, held while it lasts."""

    is_retry: bool
    is_probe: bool
    started_at: float
    mark: CohortMark


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """End of an attempt.

    `asks_to_wait`: the receiver wants no call for a while, so none begins until that is settled.
    """

    signal: Signal
    at: float
    latency_seconds: float
    asks_to_wait: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterState:
    limit: int
    in_flight: int
    mean_latency_seconds: float | None
    breaker: BreakerState
    open_until: float | None


# Allowance of a subscription that is new to this process.
FRESH: Final = Allowance(free=Concurrency().limit, retries=1)


@dataclass(slots=True)
class SubscriptionLimiter:
    """`share`: the most it may hold in flight and unsettled."""

    share: int
    concurrency: Concurrency = field(init=False)
    breaker: CircuitBreaker = field(init=False, default_factory=CircuitBreaker)
    in_flight: int = field(init=False, default=0)
    unsettled: int = field(init=False, default=0)
    """In flight, and ended but not settled."""
    wants_more: bool = field(init=False, default=False)
    """The last claim may have left some for want of a permit: claim again when a permit is free."""
    withheld_retries: bool = field(init=False, default=False)
    """The last claim took no retries: the start or end of an attempt may allow some."""
    last_used_at: float = field(init=False, default=float("-inf"))
    _budget: RetryBudget = field(init=False, default_factory=RetryBudget)
    _retries: int = field(init=False, default=0)
    _asked_to_wait: int = field(init=False, default=0)
    _retried_last: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.concurrency = Concurrency(maximum=self.share)

    def allowance(self, now: float) -> Allowance:
        if self._asked_to_wait or self.breaker.state is BreakerState.HALF_OPEN:
            return Allowance(free=0, retries=0, in_flight=self.in_flight)
        if self.breaker.state is BreakerState.OPEN:
            return Allowance(
                free=1,
                retries=1,
                in_flight=self.in_flight,
                not_before=self.breaker.refuses_until(now),
            )
        # two bounds: in flight protects the receiver, unsettled the memory of this process
        free = max(0, min(self.concurrency.limit - self.in_flight, self.share - self.unsettled))
        retries = min(
            free, max(0, self._retry_share() - self._retries), max(0, self._budget.available(now))
        )
        return Allowance(free=free, retries=retries, in_flight=self.in_flight)

    def claimed(self, allowance: Allowance, *, found: int, found_retries: int) -> bool:
        """Note a claim's result. True: claim again, because retries have their turn now."""
        self.wants_more = found >= allowance.free or bool(
            self._retries and found_retries >= allowance.retries
        )
        self.withheld_retries = not allowance.retries
        # it was the turn of first attempts, and there is none: without passing it on, retries would
        # wait for ever
        passed = not found and allowance.free > 0 and self._takes_turns and self._retried_last
        self._retried_last = self._retried_last and not passed
        return passed

    def seconds_until_retry(self, now: float) -> float:
        """Return how long the budget keeps retries back; 0: it does not."""
        return self._budget.seconds_until_next(now)

    def take(self, now: float, *, is_retry: bool) -> Permit | None:
        """Take a permit for a claimed notification; None: an answer has forbidden it meanwhile."""
        # not yet settled, so other notifiers do not know the pause; here it holds at once
        if self._asked_to_wait:
            return None
        is_probe = False
        match self.breaker.state:
            case BreakerState.HALF_OPEN:
                return None
            case BreakerState.OPEN:
                refuses_until = self.breaker.refuses_until(now)
                if refuses_until is not None and now < refuses_until:
                    return None
                # from here on nobody else: one probe decides, however many wait
                self.breaker.probing()
                is_probe = True
            case BreakerState.CLOSED:
                pass
        return Permit(
            is_retry=is_retry,
            is_probe=is_probe,
            started_at=now,
            mark=self._began(now, is_retry=is_retry),
        )

    def give(self, permit: Permit, end: AttemptEnd | None) -> None:
        """Return a permit: the attempt ended; None: it was never made, or broken off."""
        self.in_flight -= 1
        self._retries -= permit.is_retry
        if end is None:
            self.concurrency.finished(
                permit.mark,
                None,
                started_at=permit.started_at,
                now=permit.started_at,
                latency_seconds=0,
            )
            # broken off before it was sent: without this the breaker would stay half open, with no
            # probe under way
            if permit.is_probe:
                self.breaker.unprobed()
            return
        self._asked_to_wait += end.asks_to_wait
        # a retry that succeeded costs no budget: the bound is for retries that add load to a
        # receiver in trouble
        if permit.is_retry and end.signal is Signal.OK:
            self._budget.taken()
        self.concurrency.finished(
            permit.mark,
            end.signal,
            started_at=permit.started_at,
            now=end.at,
            latency_seconds=end.latency_seconds,
        )
        was_closed = self.breaker.state is BreakerState.CLOSED
        self.breaker.finished(
            failed=end.signal is not Signal.OK,
            is_probe=permit.is_probe,
            started_at=permit.started_at,
            now=end.at,
        )
        if not was_closed and self.breaker.state is BreakerState.CLOSED:
            # what was learned before the outage is no measure of what comes back from it
            self.concurrency = Concurrency(maximum=self.share)

    def settled(self, end: AttemptEnd | None) -> None:
        """Note a committed outcome: its pause now applies to every notifier."""
        self.unsettled -= 1
        self._asked_to_wait -= end is not None and end.asks_to_wait

    def is_idle(self, since: float) -> bool:
        """Return whether it was idle since, has no attempt in progress, and no breaker is open."""
        return (
            not self.unsettled
            and self.last_used_at < since
            # an open breaker is not forgotten: the next process to ask would hit the receiver at
            # full pace
            and self.breaker.state is BreakerState.CLOSED
        )

    @property
    def is_limited(self) -> bool:
        """True if a send now may have waited for the receiver."""
        is_full = self.wants_more or self.in_flight >= self.concurrency.limit
        return is_full or bool(self._asked_to_wait) or self.breaker.state is not BreakerState.CLOSED

    @property
    def state(self) -> LimiterState:
        mean = self.concurrency.mean_latency_seconds
        return LimiterState(
            limit=1 if self.breaker.state is not BreakerState.CLOSED else self.concurrency.level,
            in_flight=self.in_flight,
            mean_latency_seconds=None if mean is None else round(mean, 3),
            breaker=self.breaker.state,
            open_until=self.breaker.open_until,
        )

    @property
    def _takes_turns(self) -> bool:
        """True if first attempts and retries take turns, because the limit is too small to be
        shared.
        """
        return not int(self.concurrency.limit * RETRY_SHARE)

    def _retry_share(self) -> int:
        return (
            int(not self._retried_last)
            if self._takes_turns
            else int(self.concurrency.limit * RETRY_SHARE)
        )

    def _began(self, now: float, *, is_retry: bool) -> CohortMark:
        self.in_flight += 1
        self.unsettled += 1
        self.last_used_at = now
        self._retried_last = is_retry
        if is_retry:
            self._retries += 1
            self._budget.retry(now)
        else:
            self._budget.first()
        return self.concurrency.started(self.in_flight, now=now)

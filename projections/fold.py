"""Events to state: `fold` over all of them, `advance` by those that come last.

Same events, same state: in any order of arrival, and however often each arrives. `advance` is only
an optimisation: its answer equals that of `fold` over all events, and where it cannot be sure it
returns None and the log is folded.
"""

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from typing import Final

from events.vocabulary import Kind, Reason, Status
from projections.correction import correct
from projections.fact import ENRICHMENT_RANK, Fact, SortKey
from projections.lifecycle import MOVES, OUT_AGAIN, Flag
from projections.state import INITIAL, STALE_KEY, Estimate, LastScan, ShipmentState, Signature

_BY_KEY: Final = attrgetter("key")


def fold(facts: Iterable[Fact]) -> ShipmentState:
    # by id: however often an event arrives, it counts once
    known = {fact.event_id: fact for fact in facts}
    corrected = correct(known)
    scans: list[Fact] = []
    enrichments: list[Fact] = []
    for fact in corrected.facts:
        (enrichments if fact.enriches else scans).append(fact)
    # the keys order them, never their arrival: the same events give the same state
    scans.sort(key=_BY_KEY)
    run = _Run(INITIAL)
    for fact in scans:
        run.apply(fact)
    run.pending = corrected.pending
    # after the scans: a signer belongs to a delivery that must be known
    if enrichments:
        keys = {fact.event_id: fact.key for fact in scans}
        for fact in enrichments:
            run.enrich(fact, keys.get(fact.anchor or "") or _orphan_key(fact))
        run.pending |= {
            fact.anchor for fact in enrichments if fact.anchor and fact.anchor not in keys
        }
    if corrected.corrections:
        run.corrections = corrected.corrections
        for fact in known.values():
            run.saw(fact)
        if corrected.unbound:
            run.flags |= {Flag.CONTRADICTED}
    return run.state()


def flags_by_scan(facts: Iterable[Fact]) -> dict[str, frozenset[Flag]]:
    """Return which scan raises which flags, by event id, once corrections are applied."""
    run, raised = _Run(INITIAL), {}
    for fact in sorted(
        (
            fact
            for fact in correct({fact.event_id: fact for fact in facts}).facts
            if not fact.enriches
        ),
        key=_BY_KEY,
    ):
        run.flags = frozenset()
        run.apply(fact)
        if run.flags:
            raised[fact.event_id] = run.flags
    return raised


def advance(state: ShipmentState, facts: Iterable[Fact]) -> ShipmentState | None:
    """Advance `state` by `facts`; return None where only the whole log can answer.

    That is so where a fact is a correction, is awaited or waits itself, is a scan that does not
    sort last, enriches an event that `state` does not remember, or names a signer where the
    signer is already known; and where a program with another format wrote `state`.
    """
    # written by another format: what it remembers may mean something else
    if state.last_key == STALE_KEY:
        return None
    scans: list[Fact] = []
    enrichments: list[Fact] = []
    for fact in facts:
        if (
            fact.kind is Kind.CORRECTION
            or fact.event_id in state.pending
            or fact.anchor in state.pending
        ):
            return None
        # the earliest signed delivery counts, and the state knows only the one that it took
        if fact.names_signer and state.signature is not None:
            return None
        (enrichments if fact.enriches else scans).append(fact)
    scans.sort(key=_BY_KEY)
    run = _Run(state)
    previous = None
    for fact in scans:
        # it sorts before something that was applied already
        if fact.key <= state.last_key:
            return None
        # sorted, so the same event twice stands side by side
        if fact.event_id != previous:
            run.apply(fact)
        previous = fact.event_id
    for fact in enrichments:
        anchor_key = run.anchor_key(fact.anchor)
        signs_delivery = fact.estimated_delivery is None and fact.anchor in run.deliveries
        if anchor_key is None and not signs_delivery:
            return None
        run.enrich(fact, anchor_key or _orphan_key(fact))
    return run.state()


def _orphan_key(fact: Fact) -> SortKey:
    """Return a substitute for the key of an unknown anchor.

    All enrichments of an anchor share its time.
    """
    return (fact.key[0], ENRICHMENT_RANK, "", "", "")


class _Run:
    """A state under construction.

    Scans are applied in the order of their keys; enrichments in any order, after them.
    """

    __slots__ = (
        "attempts",
        "corrections",
        "countries",
        "delivered_at",
        "deliveries",
        "estimate",
        "flags",
        "has_time",
        "last_event_at",
        "last_key",
        "newest_key",
        "observed",
        "out_again",
        "pending",
        "promise",
        "reason",
        "scanned",
        "service",
        "signature",
        "status",
        "status_since",
    )

    def __init__(self, state: ShipmentState) -> None:
        self.status: Status = state.status
        self.reason: Reason | None = state.reason
        self.status_since: datetime | None = state.status_since
        self.flags: frozenset[Flag] = state.flags
        self.last_event_at: datetime | None = state.last_event_at
        self.has_time: bool = state.has_time
        self.delivered_at: datetime | None = state.delivered_at
        self.attempts: int = state.attempts
        self.corrections: int = state.corrections
        self.deliveries: tuple[str, ...] = state.deliveries
        self.out_again: bool = state.out_again
        self.estimate: Estimate | None = state.estimate
        self.promise: Estimate | None = state.promise
        self.scanned: LastScan | None = state.scanned
        self.countries: tuple[str, ...] = state.countries
        self.service: str | None = state.service
        self.observed: tuple[tuple[str, str], ...] = state.observed
        self.signature: Signature | None = state.signature
        self.pending: frozenset[str] = state.pending
        self.newest_key: SortKey = state.newest_key
        self.last_key: SortKey = state.last_key

    def state(self) -> ShipmentState:
        return ShipmentState(
            status=self.status,
            reason=self.reason,
            status_since=self.status_since,
            flags=self.flags,
            last_event_at=self.last_event_at,
            has_time=self.has_time,
            delivered_at=self.delivered_at,
            attempts=self.attempts,
            corrections=self.corrections,
            deliveries=self.deliveries,
            out_again=self.out_again,
            estimate=self.estimate,
            promise=self.promise,
            scanned=self.scanned,
            countries=self.countries,
            service=self.service,
            observed=self.observed,
            signature=self.signature,
            pending=self.pending,
            newest_key=self.newest_key,
            last_key=self.last_key,
        )

    def apply(self, fact: Fact) -> None:
        """Apply any fact but an enrichment."""
        self.saw(fact)
        self.newest_key = fact.key
        self.service = fact.service or self.service
        if fact.estimated_delivery is not None:
            self._estimate(Estimate(fact.key, fact.stamp, fact.estimated_delivery, fact.event_id))
        if fact.kind is Kind.SCAN or fact.kind is Kind.UNMAPPED:
            self._seen(fact)
        if fact.kind is Kind.SCAN and fact.status is not None:
            self._scan(fact, fact.status)
        elif (
            fact.names_signer
            and self.signature is None
            and self.deliveries
            and fact.signer_digest is not None
        ):
            self._sign(
                Signature(fact.stamp, fact.signer_digest.hex(), fact.event_id, self.deliveries[-1])
            )

    def anchor_key(self, anchor: str | None) -> SortKey | None:
        """Return the key of the event `anchor`, where the run remembers it."""
        if anchor == self.newest_key[2]:
            return self.newest_key
        if self.estimate is not None and anchor == self.estimate.anchor:
            return self.estimate.anchor_key
        return None

    def enrich(self, fact: Fact, anchor_key: SortKey) -> None:
        """Apply one enrichment of the event with the key `anchor_key`."""
        self.saw(fact)
        anchor = fact.anchor or ""
        if fact.estimated_delivery is not None:
            self._estimate(Estimate(anchor_key, fact.stamp, fact.estimated_delivery, anchor))
        if fact.signer_digest is not None:
            self._sign(Signature(fact.stamp, fact.signer_digest.hex(), fact.event_id, anchor))

    def saw(self, fact: Fact) -> None:
        self.last_key = max(self.last_key, fact.key)
        # a time that we only received must not replace one that the carrier stated
        if self.has_time and not fact.is_timed:
            return
        last = self.last_event_at if self.has_time is fact.is_timed else None
        self.has_time = fact.is_timed
        # One instant printed in two offsets must not read differently by the order of arrival.
        if (
            last is None
            or fact.instant > last
            or (fact.instant == last and fact.instant.isoformat() < last.isoformat())
        ):
            self.last_event_at = fact.instant

    def _seen(self, fact: Fact) -> None:
        self.scanned = LastScan(fact.event_id, fact.instant)
        if fact.country is not None and (not self.countries or self.countries[-1] != fact.country):
            # the first and the last: where it began, and where it is
            self.countries = (*self.countries[:1], fact.country)

    def _scan(self, fact: Fact, scanned: Status) -> None:
        current = self.status
        move = MOVES[current, scanned]
        flag = move.flag_if_out_again if self.out_again else move.flag
        if flag is not None and flag not in self.flags:
            self.flags |= {flag}
        if scanned is Status.DELIVERY_ATTEMPTED:
            self.attempts += 1
        if move.to is not current:
            self.status = move.to
            self.status_since = fact.instant if fact.is_timed else None
            self.reason = fact.reason
            self.out_again = False
        elif scanned is current:
            self.reason = fact.reason or self.reason
            if self.status_since is None and fact.is_timed:
                self.status_since = fact.instant
        if move.to is Status.DELIVERED:
            self._deliver(
                fact, scanned, again=current is not Status.DELIVERED or flag is Flag.REDELIVERED
            )

    def _deliver(self, fact: Fact, scanned: Status, *, again: bool) -> None:
        if scanned in OUT_AGAIN:
            self.out_again = True
        if scanned is not Status.DELIVERED:
            return
        if again:
            self.deliveries = (fact.event_id,)
            self.delivered_at = fact.instant if fact.is_timed else None
            self.signature = None
            # a new status: what went out before it is over
            self.out_again = False
        else:
            if self.delivered_at is None and fact.is_timed:
                self.delivered_at = fact.instant
            # unsigned deliveries are kept as candidates: a signer may follow for any of them
            if self.signature is None:
                self.deliveries = (*self.deliveries, fact.event_id)
        if fact.signer_digest is not None:
            self._sign(
                Signature(fact.stamp, fact.signer_digest.hex(), fact.event_id, fact.event_id)
            )

    def _estimate(self, candidate: Estimate) -> None:
        if self.estimate is None or candidate > self.estimate:
            self.estimate = candidate
        if self.promise is None or candidate < self.promise:
            self.promise = candidate

    def _sign(self, candidate: Signature) -> None:
        """Take the signer of the earliest signed delivery; ties go to the last stamp and digest."""
        # the signer of a delivery that a later one replaced
        if candidate.anchor not in self.deliveries:
            return
        place = self.deliveries.index(candidate.anchor)
        current = self.signature
        if current is None or candidate.anchor != current.anchor or candidate > current:
            self.signature = candidate
            # deliveries after the signed one can no longer give the signer
            self.deliveries = self.deliveries[: place + 1]

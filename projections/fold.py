"""Events to state: `fold` over all of them, `advance` by those that come last.

Same events, same state: in any order of arrival, and however often each arrives. `advance` is only
an optimisation: its answer equals that of `fold` over all events, and where it cannot be sure it
returns None and the log is folded.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from events.vocabulary import Kind, Status
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
    run = INITIAL.copy()
    for fact in scans:
        _apply(run, fact)
    run.pending = corrected.pending
    # after the scans: a signer belongs to a delivery that must be known
    if enrichments:
        keys = {fact.event_id: fact.key for fact in scans}
        for fact in enrichments:
            _enrich(run, fact, keys.get(fact.anchor or "") or _orphan_key(fact))
        run.pending |= {
            fact.anchor for fact in enrichments if fact.anchor and fact.anchor not in keys
        }
    if corrected.corrections:
        run.corrections = corrected.corrections
        for fact in known.values():
            _saw(run, fact)
        if corrected.unbound:
            run.flags |= {Flag.CONTRADICTED}
    return run


def flags_by_scan(facts: Iterable[Fact]) -> dict[str, frozenset[Flag]]:
    """Return which scan raises which flags, by event id, once corrections are applied."""
    run, raised = INITIAL.copy(), {}
    for fact in sorted(
        (
            fact
            for fact in correct({fact.event_id: fact for fact in facts}).facts
            if not fact.enriches
        ),
        key=_BY_KEY,
    ):
        run.flags = frozenset()
        _apply(run, fact)
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
    run = state.copy()
    previous = None
    for fact in scans:
        # it sorts before something that was applied already
        if fact.key <= state.last_key:
            return None
        # sorted, so the same event twice stands side by side
        if fact.event_id != previous:
            _apply(run, fact)
        previous = fact.event_id
    for fact in enrichments:
        anchor_key = _anchor_key(run, fact.anchor)
        signs_delivery = fact.estimated_delivery is None and fact.anchor in run.deliveries
        if anchor_key is None and not signs_delivery:
            return None
        _enrich(run, fact, anchor_key or _orphan_key(fact))
    return run


def _orphan_key(fact: Fact) -> SortKey:
    """Return a substitute for the key of an unknown anchor.

    All enrichments of an anchor share its time.
    """
    return (fact.key[0], ENRICHMENT_RANK, "", "", "")


def _apply(run: ShipmentState, fact: Fact) -> None:
    """Apply any fact but an enrichment."""
    _saw(run, fact)
    run.newest_key = fact.key
    run.service = fact.service or run.service
    if fact.estimated_delivery is not None:
        _estimate(run, Estimate(fact.key, fact.stamp, fact.estimated_delivery, fact.event_id))
    if fact.kind is Kind.SCAN or fact.kind is Kind.UNMAPPED:
        _seen(run, fact)
    if fact.kind is Kind.SCAN and fact.status is not None:
        _scan(run, fact, fact.status)
    elif (
        fact.names_signer
        and run.signature is None
        and run.deliveries
        and fact.signer_digest is not None
    ):
        _sign(
            run, Signature(fact.stamp, fact.signer_digest.hex(), fact.event_id, run.deliveries[-1])
        )


def _anchor_key(run: ShipmentState, anchor: str | None) -> SortKey | None:
    """Return the key of the event `anchor`, where the run remembers it."""
    if anchor == run.newest_key[2]:
        return run.newest_key
    if run.estimate is not None and anchor == run.estimate.anchor:
        return run.estimate.anchor_key
    return None


def _enrich(run: ShipmentState, fact: Fact, anchor_key: SortKey) -> None:
    _saw(run, fact)
    anchor = fact.anchor or ""
    if fact.estimated_delivery is not None:
        _estimate(run, Estimate(anchor_key, fact.stamp, fact.estimated_delivery, anchor))
    if fact.signer_digest is not None:
        _sign(run, Signature(fact.stamp, fact.signer_digest.hex(), fact.event_id, anchor))


def _saw(run: ShipmentState, fact: Fact) -> None:
    run.last_key = max(run.last_key, fact.key)
    # a time that we only received must not replace one that the carrier stated
    if run.has_time and not fact.is_timed:
        return
    last = run.last_event_at if run.has_time is fact.is_timed else None
    run.has_time = fact.is_timed
    # One instant printed in two offsets must not read differently by the order of arrival.
    if (
        last is None
        or fact.instant > last
        or (fact.instant == last and fact.instant.isoformat() < last.isoformat())
    ):
        run.last_event_at = fact.instant


def _seen(run: ShipmentState, fact: Fact) -> None:
    run.scanned = LastScan(fact.event_id, fact.instant)
    if fact.country is not None and (not run.countries or run.countries[-1] != fact.country):
        # the first and the last: where it began, and where it is
        run.countries = (*run.countries[:1], fact.country)


def _scan(run: ShipmentState, fact: Fact, scanned: Status) -> None:
    current = run.status
    move = MOVES[current, scanned]
    flag = move.flag_if_out_again if run.out_again else move.flag
    if flag is not None and flag not in run.flags:
        run.flags |= {flag}
    if scanned is Status.DELIVERY_ATTEMPTED:
        run.attempts += 1
    if move.to is not current:
        run.status = move.to
        run.status_since = fact.instant if fact.is_timed else None
        run.reason = fact.reason
        run.out_again = False
    elif scanned is current:
        run.reason = fact.reason or run.reason
        if run.status_since is None and fact.is_timed:
            run.status_since = fact.instant
    if move.to is Status.DELIVERED:
        _deliver(
            run, fact, scanned, again=current is not Status.DELIVERED or flag is Flag.REDELIVERED
        )


def _deliver(run: ShipmentState, fact: Fact, scanned: Status, *, again: bool) -> None:
    if scanned in OUT_AGAIN:
        run.out_again = True
    if scanned is not Status.DELIVERED:
        return
    if again:
        run.deliveries = (fact.event_id,)
        run.delivered_at = fact.instant if fact.is_timed else None
        run.signature = None
        # a new status: what went out before it is over
        run.out_again = False
    else:
        if run.delivered_at is None and fact.is_timed:
            run.delivered_at = fact.instant
        # unsigned deliveries are kept as candidates: a signer may follow for any of them
        if run.signature is None:
            run.deliveries = (*run.deliveries, fact.event_id)
    if fact.signer_digest is not None:
        _sign(run, Signature(fact.stamp, fact.signer_digest.hex(), fact.event_id, fact.event_id))


def _estimate(run: ShipmentState, candidate: Estimate) -> None:
    if run.estimate is None or candidate > run.estimate:
        run.estimate = candidate
    if run.promise is None or candidate < run.promise:
        run.promise = candidate


def _sign(run: ShipmentState, candidate: Signature) -> None:
    """Take the signer of the earliest signed delivery; ties go to the last stamp and digest."""
    # the signer of a delivery that a later one replaced
    if candidate.anchor not in run.deliveries:
        return
    place = run.deliveries.index(candidate.anchor)
    current = run.signature
    if current is None or candidate.anchor != current.anchor or candidate > current:
        run.signature = candidate
        # deliveries after the signed one can no longer give the signer
        run.deliveries = run.deliveries[: place + 1]

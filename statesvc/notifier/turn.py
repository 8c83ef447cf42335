"""A turn of the notifier: settle finished attempts and claim more, in one transaction.

It takes two round trips. A notification that waited behind a settled one is claimed at once. The
lease is durable when the turn is over, so every attempt is counted before it is sent.

A notification that ends gets one entry with all its tries; until then its tries are stored outside
the log. Every try that was made is recorded, even if its lease has expired; only notifications that
the token still holds are removed from the outbox or given back. Lock order: ARCHITECTURE.md.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.errors import Cause
from statesvc.database.pipelined import pipelined_transaction
from statesvc.database.queries import Pending, Sender, columns, queries, send
from statesvc.delivery.attempt_entry import EndedNotification, append_ends, record_open_attempts
from statesvc.delivery.attempt_part import DeliveryAttempt
from statesvc.delivery.limiter.permits import Offer
from statesvc.delivery.limiter.signal import pause_asked_for
from statesvc.delivery.outcome import EndOutcome, RetryLater, next_step
from statesvc.health.notices import Notice, write_notices
from statesvc.log.actions import append_actions
from statesvc.log.batch_row import begin_batch, write_batch
from statesvc.notifier.attempts import AttemptResult
from statesvc.notifier.claim_outbox import ClaimedRows, Delivery, send_claim, send_next_due
from statesvc.notifier.policy import GONE, Disabled, ReceiverOutcomes, disable, note

_SQL = queries("statesvc.notifier", "turn")
_KEY_COLUMNS = ("subscription_ids", "shipment_ids", "sequences")
_jitter = random.Random()  # noqa: S311 - spreads retries, guards nothing

Key = tuple[UUID, UUID, int]


@dataclass(frozen=True, slots=True)
class Settled:
    """Result of a group. `has_neighbours`: others waited behind it; `notices`: for the operator."""

    has_neighbours: bool = False
    notices: Sequence[Notice] = ()


@dataclass(slots=True)
class _Conclusion:
    finished: list[Key] = field(default_factory=list)
    later: list[tuple[UUID, UUID, int, float]] = field(default_factory=list)
    buried: list[AttemptResult] = field(default_factory=list)
    disabled: set[UUID] = field(default_factory=set)
    open: list[DeliveryAttempt] = field(default_factory=list)
    """Tries of unfinished notifications."""
    ends: list[EndedNotification] = field(default_factory=list)


async def settle(
    pipeline: Sender,
    keyring: Keyring,
    group: Sequence[AttemptResult],
    *,
    worker: str,
    again: bool = False,
) -> Settled:
    """Settle a group, in the caller's transaction.

    Its last statements are sent with the caller's next. `again`: an earlier commit of this
    group has an unknown outcome; notifications that it settled are left unchanged.
    """
    # first: notifications come first in this lock order, and the stamp is read under their locks
    pending_rows = await send(
        pipeline,
        _SQL["hold"],
        columns([_key(f.delivery) for f in group], _KEY_COLUMNS),
        list,
    )
    pending_stamp = await begin_batch(pipeline)
    rows, stamp = await pending_rows.rows(), await pending_stamp.rows()
    waiting: dict[Key, UUID | None] = {row[:3]: row[3] for row in rows}
    now = stamp.recorded_at

    def is_held(one: AttemptResult) -> bool:
        # fencing: a row with another token is no longer ours to remove or to reschedule; that token
        # may be this notifier's, and in this group, where an attempt outlived its lease
        return waiting.get(_key(one.delivery)) == one.delivery.token

    ours = [f for f in group if is_held(f)]
    # after a COMMIT without an answer, it may have settled a row that is gone, and recorded its try
    known = [f for f in group if not again or is_held(f)]
    concluded = _conclusion([(f, _next_step(f)) for f in ours])
    _add_lost(concluded, [f for f in known if not is_held(f)], waiting.keys())
    # a try is recorded at once, although its notification goes on: a crash must not lose that it
    # was made
    await record_open_attempts(pipeline, keyring, concluded.open, now=now, worker=worker)
    leaf_hashes = await append_ends(pipeline, keyring, concluded.ends, now=stamp)
    if concluded.later:
        parameters = {"now": now, **columns(concluded.later, (*_KEY_COLUMNS, "delays"))}
        await pipeline.execute(_SQL["reschedule"], parameters)
        # those behind it become due with it: a claim would otherwise read and pass over them each
        # time
        await pipeline.execute(_SQL["defer_followers"], parameters)
    if concluded.buried:
        await _bury(pipeline, concluded.buried, now=now, worker=worker)
    # before the batch row: disabling is an action, an entry of the same batch
    disabled = await _throttle(pipeline, ours, concluded.disabled, now=now)
    leaf_hashes += await append_actions(
        pipeline, disabled.actions, now=stamp, before=len(leaf_hashes)
    )
    # one batch row for all entries of the transaction, as the sealer requires
    if leaf_hashes:
        await write_batch(
            pipeline,
            batch_id=stamp.batch_id,
            recorded_at=now,
            leaf_hashes=leaf_hashes,
            writer=worker,
        )
    # after the entries that end them: the rows leave the outbox in the transaction that proves why
    if concluded.finished:
        await pipeline.execute(_SQL["finish"], columns(concluded.finished, _KEY_COLUMNS))
    notices = list(disabled.notices)
    # of all tries that were made, ours or not: a receiver is judged by what it answered
    outcomes = _outcomes(known)
    if outcomes.failed or any(row[4] for row in rows) or len(known) > len(ours):
        recovered = await (await note(pipeline, outcomes, now=now)).rows()
        await write_notices(pipeline, recovered, now=now)
        notices += recovered
    return Settled(has_neighbours=any(row[5] for row in rows), notices=notices)


def _key(delivery: Delivery) -> Key:
    return delivery.subscription_id, delivery.shipment_id, delivery.sequence


def _next_step(finished: AttemptResult) -> EndOutcome | RetryLater:
    if finished.answer is None:
        # an attempt that was never made has no outcome to retry by
        return EndOutcome.CANCELLED if finished.delivery.is_too_old else EndOutcome.GIVEN_UP
    return next_step(
        finished.answer.outcome,
        attempts=finished.delivery.attempts,
        retry_after_seconds=finished.answer.retry_after_seconds,
        jitter=_jitter.random(),
    )


def _conclusion(steps: Sequence[tuple[AttemptResult, EndOutcome | RetryLater]]) -> _Conclusion:
    concluded = _Conclusion()
    for one, step in steps:
        if isinstance(step, RetryLater):
            concluded.later.append((*_key(one.delivery), step.delay_seconds))
            concluded.open += _made(one)
            if step.disable:
                concluded.disabled.add(one.delivery.subscription_id)
            continue
        concluded.finished.append(_key(one.delivery))
        concluded.ends.append(EndedNotification.of(one.delivery, step, _made(one)))
        if step is EndOutcome.GIVEN_UP:
            concluded.buried.append(one)
    return concluded


def _add_lost(
    concluded: _Conclusion, lost: Sequence[AttemptResult], waiting: Collection[Key]
) -> None:
    """Add tries of lost leases: to those of the claim that has it now, or as late tries."""
    late: dict[Key, list[AttemptResult]] = {}
    for one in lost:
        # another claim has the lease: this try joins the entry that its settling writes
        if _key(one.delivery) in waiting:
            concluded.open += _made(one)
        # the notification has ended, and its entry is in the log for ever: the try gets an entry of
        # its own
        elif one.answer is not None:
            late.setdefault(_key(one.delivery), []).append(one)
    for results in late.values():
        made = [each for one in results for each in _made(one)]
        concluded.ends.append(EndedNotification.of(results[0].delivery, EndOutcome.LATE, made))


def _made(one: AttemptResult) -> list[DeliveryAttempt]:
    """Return the try, if it was made."""
    if one.answer is None:
        return []
    return [
        DeliveryAttempt(
            queued=one.delivery, answer=one.answer, started_at=one.started_at, body=one.body
        )
    ]


async def _throttle(
    connection: Sender, group: Sequence[AttemptResult], gone: set[UUID], *, now: datetime
) -> Disabled:
    """Apply receivers' requests: stop sending, or pause."""
    disabled = await disable(connection, list(gone), why=GONE, now=now) if gone else Disabled()
    pauses = [
        (one.delivery.subscription_id, seconds)
        for one in group
        if one.answer is not None
        and (seconds := pause_asked_for(one.answer.status_code, one.answer.retry_after_seconds))
        is not None
    ]
    if pauses:
        await connection.execute(
            _SQL["postpone"], {"now": now, **columns(pauses, ("subscription_ids", "seconds"))}
        )
    return disabled


def _outcomes(group: Sequence[AttemptResult]) -> ReceiverOutcomes:
    outcomes = ReceiverOutcomes()
    for one in group:
        if one.answer is not None:
            outcomes.add(one.delivery.subscription_id, one.answer.outcome, one.answer.status_code)
    return outcomes


async def _bury(
    connection: Sender, buried: Sequence[AttemptResult], *, now: datetime, worker: str
) -> None:
    rows = [
        (
            f.delivery.notification.carrier_id,
            f.delivery.notification.webhook_id,
            _detail(f),
            f.delivery.attempts,
            *_key(f.delivery),
        )
        for f in buried
    ]
    parameters = columns(rows, ("carrier_ids", "webhook_ids", "details", "attempts", *_KEY_COLUMNS))
    await connection.execute(
        _SQL["bury"],
        {"cause": Cause.DELIVERY_EXHAUSTED.value, "now": now, "worker": worker, **parameters},
    )


def _detail(finished: AttemptResult) -> str:
    answer = finished.answer
    if finished.expired:
        return (
            f"too old for its type after {finished.delivery.attempts - 1} attempts:"
            " `give_up_after_seconds` of the subscription"
        )
    if answer is None:
        return (
            f"{finished.delivery.attempts - 1} attempts, the last ones ended without a verdict: the"
            " notifier died"
        )
    status = "" if answer.status_code is None else f", status {answer.status_code}"
    detail = f", {answer.detail}" if answer.detail else ""
    return (
        f"{finished.delivery.attempts} attempts, the last one:"
        f" {answer.outcome.value}{status}{detail}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Work of a turn. `offer` None: no permit is free.

    `settled_before`: the outcome of an earlier commit of this group is unknown. `claims`: there
    may be notifications to claim; otherwise only those behind a settled notification are.
    `asks_due`: also query when the next notification becomes due.
    """

    worker: str
    ended: Sequence[AttemptResult] = ()
    settled_before: bool = False
    offer: Offer | None = None
    lease_seconds: float = 0.0
    claims: bool = True
    asks_due: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """Result of a committed turn.

    `claimed` None: no claim was made. `due` None: it was not queried.
    """

    settled: Settled
    claimed: ClaimedRows | None = None
    due: float | None = None


async def take_turn(connection: AsyncConnection[Any], keyring: Keyring, turn: Turn) -> TurnResult:
    """Commit the turn as a whole."""
    settled = Settled()
    pending_claim: Pending[ClaimedRows] | None = None
    pending_due: Pending[float] | None = None
    # one transaction saves a commit, and what waited behind a settled notification is claimable in
    # it
    async with pipelined_transaction(connection) as pipeline:
        if turn.ended:
            settled = await settle(
                pipeline, keyring, turn.ended, worker=turn.worker, again=turn.settled_before
            )
        # after the settling: only now the notifications behind the settled ones are claimable
        if turn.offer is not None and (turn.claims or settled.has_neighbours):
            pending_claim = await send_claim(
                pipeline, turn.offer, worker=turn.worker, lease_seconds=turn.lease_seconds
            )
            if turn.asks_due:
                # after the claim, under the same offer: what was claimed is due only when its lease
                # ends
                pending_due = await send_next_due(pipeline, turn.offer)
    return TurnResult(
        # after the COMMIT, whose answer brings these rows: asking for them inside would cost a
        # round trip
        settled=settled,
        claimed=None if pending_claim is None else await pending_claim.rows(),
        due=None if pending_due is None else await pending_due.rows(),
    )

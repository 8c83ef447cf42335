"""One leased batch: read > append and settle. Every message is settled, given back or buried.

A message of a shipment that another transaction has locked is postponed, uncharged, and the others
are applied. Its next attempt waits in line for the lock, apart from the others (`process_locked`).
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Final, Self
from uuid import UUID

import structlog
from psycopg import AsyncConnection
from structlog.contextvars import bound_contextvars

from events.errors import Cause
from statesvc.append.append_batch import AppendBatch, WhenLocked
from statesvc.append.retry import (
    RETRIES_MAX,
    Fault,
    LockedShipmentsError,
    RetryPolicy,
    classify,
    redelivery_backoff_seconds,
    run_transaction,
)
from statesvc.append.transaction import append_claimed
from statesvc.log.event_store import NEW_STREAMS_MAX
from statesvc.queue.claim import Burial, Message, Retry, bury, postpone, retry
from statesvc.reading.read_message import Read
from statesvc.telemetry.metric import Stage
from statesvc.worker.batch_context import BatchContext
from statesvc.worker.batch_counts import count_appended, count_attempts
from statesvc.worker.message_traces import MessageTraces
from statesvc.worker.trial_evidence import bound_trials, record_trials
from statesvc.worker.versions import Trial, read_chosen

log = structlog.get_logger()

# Messages that are read before the event loop runs other tasks.
_YIELD_EVERY: Final = 32
# once may be chance; after a second transient failure it may be this message that causes it for its
# batch
_ALONE_AFTER_RETRIES: Final = 2
# long enough for a lock whose holder is already committing
_GLANCE_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lease:
    """Lease of a batch.

    `ends` is on the monotonic clock; `retries` counts those of each message before this attempt.
    """

    token: UUID
    ends: float
    retries: Mapping[UUID, int]
    traces: MessageTraces
    settled: set[UUID] = field(default_factory=set)

    @classmethod
    @contextmanager
    def of(cls, context: BatchContext, messages: Sequence[Message], ends: float) -> Iterator[Self]:
        traces = MessageTraces.of(context.telemetry.tracer, messages)
        try:
            with bound_contextvars(**_context_ids(messages)):
                yield cls(
                    token=messages[0].token,
                    ends=ends,
                    retries={message.message_id: message.retries for message in messages},
                    traces=traces,
                )
        finally:
            traces.end()


def _context_ids(messages: Sequence[Message]) -> dict[str, str]:
    """Return the log context of this batch.

    Its token; its carrier and message id where there is a single carrier or message.
    """
    ids = {"token": str(messages[0].token)}
    if len({message.carrier_id for message in messages}) == 1:
        ids["carrier"] = messages[0].carrier_id
    if len(messages) == 1:
        ids["message_id"] = str(messages[0].message_id)
    return ids


async def process(context: BatchContext, messages: Sequence[Message], *, lease_ends: float) -> int:
    """Process `messages` (all of one token) until each has a verdict; return the number of changes.

    `lease_ends` is on the monotonic clock.
    """
    changes = 0
    with _Lease.of(context, messages, lease_ends) as lease:
        # all are read before the first transaction: locks are never held while a normalizer runs
        reads, trials = await _readable(context, lease, messages)
        for group in transaction_groups(reads, lease.retries):
            changes += await _append(context, lease, group)
    await _record_trials(context, lease, trials)
    return changes


async def process_locked(
    context: BatchContext, messages: Sequence[Message], *, lease_ends: float, wait_seconds: float
) -> int:
    """Process postponed messages, waiting for locks, for `wait_seconds` in all.

    Waiting in line keeps newer messages from starving them. Messages that name the same
    shipments share a transaction: separate transactions would each make newcomers wait for the
    lock, and fold the history of late scans each time. Messages that are no longer locked go
    first, the rest share the time.
    """
    with _Lease.of(context, messages, lease_ends) as lease:
        reads, trials = await _readable(context, lease, messages)
        # after the reading, which must not use up the time for locks
        until, changes, locked = time.monotonic() + wait_seconds, 0, []
        for group in _by_shipments(reads):
            try:
                changes += await _append(context, lease, group, wait_seconds=_GLANCE_SECONDS)
            except LockedShipmentsError:
                locked.append(group)
        # an even share of what is left: groups that got their lock early leave theirs to the others
        for index, group in enumerate(locked):
            seconds = max(_GLANCE_SECONDS, (until - time.monotonic()) / (len(locked) - index))
            try:
                changes += await _append(context, lease, group, wait_seconds=seconds)
            except LockedShipmentsError:
                await requeue_locked(context, lease.token, group)
    await _record_trials(context, lease, trials)
    return changes


async def _record_trials(context: BatchContext, lease: _Lease, trials: Sequence[Trial]) -> None:
    # a message that was postponed or given back is read, and tried, once more by its next claim
    if settled := [trial for trial in trials if trial.message.message_id in lease.settled]:
        await record_trials(context, settled)


async def _readable(
    context: BatchContext, lease: _Lease, messages: Sequence[Message]
) -> tuple[list[Read], list[Trial]]:
    """Return the readable messages and the trials of a candidate version; bury the unreadable."""
    count_attempts(context.telemetry, messages)
    # the claim carries the newest revision, so a worker never reads with older mappings than an
    # operator saw set
    if max(message.mappings for message in messages) > context.mappings.revision:
        await run_transaction(
            context.pool.connection, context.mappings.refresh, RetryPolicy(deadline=lease.ends)
        )
    reads: list[Read] = []
    burials: list[tuple[str, Burial]] = []
    trials: list[Trial] = []
    with context.telemetry.stage(
        Stage.NORMALIZE, links=lease.traces.links(), messages=len(messages)
    ):
        for index, message in enumerate(messages, 1):
            outcome, trial = read_chosen(
                message,
                keyring=context.keyring,
                carriers=context.carriers,
                mappings=context.mappings,
            )
            if trial is not None:
                trials.append(trial)
            if isinstance(outcome, Burial):
                burials.append((message.carrier_id, outcome))
            else:
                reads.append(outcome)
            # extending the lease and answering `/health` run in this loop, too
            if index % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
    # in a transaction of its own, before the others: their append may fail and be tried again
    if burials:
        await _bury(context, lease, burials)
    return reads, trials


def transaction_groups(reads: Sequence[Read], retries: Mapping[UUID, int]) -> Iterator[list[Read]]:
    """Yield groups of messages that share a transaction, bounded by the streams that it may make.

    A message that was given back several times is alone in its group.
    """
    group: list[Read] = []
    events = 0
    for read in reads:
        if retries[read.message_id] >= _ALONE_AFTER_RETRIES:
            continue
        if (
            group
            # the cheap sum first: it bounds the number of shipments, which only a set tells exactly
            and events + len(read.events) > NEW_STREAMS_MAX
            and _shipments([*group, read]) > NEW_STREAMS_MAX
        ):
            yield group
            group, events = [], 0
        group.append(read)
        events += len(read.events)
    yield group
    for read in reads:
        if retries[read.message_id] >= _ALONE_AFTER_RETRIES:
            yield [read]


def _by_shipments(reads: Sequence[Read]) -> list[list[Read]]:
    """Return the messages that name the same shipments, in inbox order; the group of the oldest
    first.
    """
    groups: dict[frozenset[UUID], list[Read]] = defaultdict(list)
    for read in reads:
        # a dict keeps the order of insertion, and so the oldest message's group is first
        groups[frozenset(read.shipments())].append(read)
    return list(groups.values())


def _shipments(reads: Sequence[Read]) -> int:
    return len(
        {
            (event.carrier_id, event.tracking_number, event.discriminator)
            for read in reads
            for event in read.events
        }
    )


async def _append(
    context: BatchContext, lease: _Lease, reads: list[Read], *, wait_seconds: float | None = None
) -> int:
    """Append and settle; if a message fails, the group is halved until that message is alone.

    Returns the number of changes.

    Postpones messages of locked shipments; with `wait_seconds` it waits for these shipments
    instead. Raises LockedShipmentsError if that is not enough.
    """
    if not reads:
        return 0

    # a factory, not a batch: each try of the transaction begins with a new one
    new_batch = partial(
        AppendBatch,
        keyring=context.keyring,
        messages=reads,
        worker=context.worker,
        when_locked=WhenLocked.POSTPONE if wait_seconds is None else WhenLocked.WAIT,
        measure=context.telemetry.stage,
        traceparents=lease.traces.traceparents(),
    )
    transaction = partial(append_claimed, new_batch=new_batch, token=lease.token)
    # a second is left to give the messages back
    policy = RetryPolicy(
        deadline=lease.ends - 1,
        archive=context.archive,
        locked_until=time.monotonic() + (wait_seconds or 0.0),
    )
    try:
        with context.telemetry.stage(Stage.APPEND, links=lease.traces.links(), messages=len(reads)):
            batch = await run_transaction(context.pool.connection, transaction, policy)
    # before the general case below: the caller decides whether to wait again or to give back
    except LockedShipmentsError:
        raise
    except Exception as error:  # noqa: BLE001 - logged there, by whose fault it is
        return await _append_parts(context, lease, reads, error)
    count_appended(context.telemetry, batch)
    # after the commit, and best effort: trials are evidence, and must not fail an append
    await bound_trials(context, batch.reads.values())
    # not `reads`: messages with a lost lease, or postponed, were left out of the transaction
    applied = [read.message_id for read in batch.reads.values()]
    lease.settled.update(applied)
    lease.traces.settled(applied, "applied")
    if batch.postponed:
        _note_postponed(context, batch.postponed)
    return len(batch.changes)


async def _append_parts(
    context: BatchContext, lease: _Lease, reads: list[Read], error: Exception
) -> int:
    """Append the messages that are not to blame for the error that the append of all of them
    met.
    """
    match classify(error):
        # not halved: every half would fail alike
        case Fault.TRANSIENT:
            await _give_back(context, lease, reads, error)
        case Fault.PERMANENT | Fault.LOCKED if len(reads) > 1:
            log.warning("batch_halved", messages=len(reads), exc_info=error)
            # halving isolates the message at fault; all others still take effect
            half = len(reads) // 2
            return await _append(context, lease, reads[:half]) + await _append(
                context, lease, reads[half:]
            )
        case Fault.LOCKED:
            await requeue_locked(context, lease.token, reads)
        case Fault.PERMANENT:
            log.error(
                "message_failed",
                message_id=str(reads[0].message_id),
                carrier=reads[0].carrier_id,
                exc_info=error,
            )
            burial = Burial(
                message_id=reads[0].message_id,
                cause=Cause.NORMALIZER_FAILED,
                # the error's text may quote a value of the row, and `detail` is shown to operators
                detail=f"{_name_of(error)} while its events were applied",
                normalizer=reads[0].normalizer,
                shipments=reads[0].shipments(),
            )
            await _bury(context, lease, [(reads[0].carrier_id, burial)])
    return 0


async def requeue_locked(
    context: BatchContext, token: UUID, messages: "Sequence[Message] | Sequence[Read]"
) -> None:
    """Give messages back with best effort: if the database is away, the end of the lease does the
    same.
    """
    try:
        async with context.pool.connection() as connection:
            await postpone(connection, token, [message.message_id for message in messages])
    except Exception:
        log.warning("give_back_failed", messages=len(messages), exc_info=True)
        return
    _note_postponed(context, messages)


def _note_postponed(context: BatchContext, messages: "Sequence[Message] | Sequence[Read]") -> None:
    log.info("messages_postponed", messages=len(messages))
    for carrier_id, count in Counter(message.carrier_id for message in messages).items():
        context.telemetry.messages_postponed.add(count, {"carrier": carrier_id})
    context.on_postponed()


async def _bury(
    context: BatchContext, lease: _Lease, burials: Sequence[tuple[str, Burial]]
) -> None:
    """Move messages (with their carriers) to the dead letters; if that fails, they are claimed
    again when the lease ends.
    """

    async def transaction(connection: AsyncConnection[Any]) -> None:
        # with the bodies of erased shipments: a dead letter must not commit before its body is
        # forgotten
        async with connection.transaction():
            await bury(connection, lease.token, [burial for _, burial in burials])

    try:
        await run_transaction(
            context.pool.connection, transaction, RetryPolicy(deadline=lease.ends)
        )
    # nothing to undo: the lease ends by itself, and the next claim counts an attempt
    except Exception:
        log.exception("burial_failed", messages=len(burials))
        return
    lease.settled.update(burial.message_id for _, burial in burials)
    examples = {
        # reversed: the first of each kind wins, and is the example in the log line
        (carrier_id, burial.cause): burial.message_id
        for carrier_id, burial in reversed(burials)
    }
    for (carrier_id, cause), count in Counter(
        (carrier_id, burial.cause) for carrier_id, burial in burials
    ).items():
        context.telemetry.normalize_failures.add(
            count, {"carrier": carrier_id, "cause": cause.value}
        )
        context.burials.count(
            carrier_id, cause.value, count, message_id=examples[carrier_id, cause]
        )


async def _give_back(
    context: BatchContext, lease: _Lease, reads: Sequence[Read], error: BaseException
) -> None:
    """Give messages back with best effort; if the database is away, their leases just end.

    A message beyond its retry budget is buried.
    """
    retries = [
        Retry(
            message_id=read.message_id,
            delay=timedelta(seconds=redelivery_backoff_seconds(lease.retries[read.message_id])),
            error=_name_of(error),
            normalizer=read.normalizer,
            shipments=read.shipments(),
        )
        for read in reads
    ]
    try:
        async with context.pool.connection() as connection:
            await retry(connection, lease.token, retries)
    except Exception:
        log.warning("give_back_failed", messages=len(reads), exc_info=True)
        return
    given_back: dict[tuple[str, bool], list[UUID]] = defaultdict(list)
    for read in reads:
        # the statement decides by the same bound which of them it buries
        given_back[read.carrier_id, lease.retries[read.message_id] >= RETRIES_MAX].append(
            read.message_id
        )
    for (carrier_id, is_spent), ids in given_back.items():
        if is_spent:
            context.burials.count(
                carrier_id, Cause.ATTEMPTS_EXHAUSTED.value, len(ids), message_id=ids[0]
            )
        else:
            context.telemetry.messages_retried.add(len(ids), {"carrier": carrier_id})


def _name_of(error: BaseException) -> str:
    """Return an error's type and SQLSTATE; its text may quote values."""
    sqlstate = getattr(error, "sqlstate", None)
    return f"{type(error).__name__}{f' (SQLSTATE {sqlstate})' if sqlstate else ''}"

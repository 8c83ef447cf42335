"""The transaction of a batch: everything that its messages cause commits together, or not at all.

`append` is its steps, in their order; they need two round trips for any size of batch: look up,
write. A late scan's history, conflicts and parcels of several sources take one more each. A crash
before the commit leaves the messages leased and untouched, a crash after it leaves no work. A
shipment that another transaction has locked delays its own messages only: a worker postpones them,
and applies the rest. Lock order: ARCHITECTURE.md.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from events.clear_part import listed_code
from events.entry.assemble import EventRow, StreamHead, assemble_conflicts, assemble_events
from events.entry.proposal import Proposal, decide
from events.errors import Cause
from events.event import Event
from events.vocabulary import Kind
from projections.project import facts_from_log, project
from statesvc.append.append_batch import AppendBatch
from statesvc.append.look_up import look_up
from statesvc.append.parcel_locks import read_parcel_logs
from statesvc.append.settlements import settlements_of
from statesvc.append.write_entries import write_entries, write_streams
from statesvc.database.pipelined import pipelined_transaction
from statesvc.database.queries import Sender, columns, queries
from statesvc.files.archive_errors import ArchivedHistoryError
from statesvc.log.event_store import count_conflicts, read_events, read_streams
from statesvc.queue.claim import Settlement, lock_leased, postpone, settle
from statesvc.reading.read_message import Read
from statesvc.reading.trials import write_trials
from statesvc.telemetry.metric import Stage

_SQL = queries("statesvc.append", "transaction")
# Time that it waits for a dedupe key that another transaction is taking, or for a dead letter.
_LOCK_SECONDS: Final = 0.5


async def append_claimed(
    connection: AsyncConnection[Any],
    new_batch: Callable[[Sender], AppendBatch],
    *,
    token: UUID,
    lock_seconds: float = _LOCK_SECONDS,
) -> AppendBatch:
    """Append and settle leased messages in a transaction; messages with a lost lease are left out.

    `new_batch` makes a new batch for each try. Postponed messages are given back for a short while.
    Raises as `append` does.
    """
    with ExitStack() as settling:
        async with pipelined_transaction(connection) as pipeline:
            # anew at each try: a failed transaction leaves its results in the batch
            batch = new_batch(pipeline)
            message_ids = [read.message_id for read in batch.messages]
            # first: messages precede shipments in the lock order, and its lock_timeout bounds the
            # rest
            batch.still_leased = await lock_leased(
                pipeline, token, message_ids, lock_seconds=lock_seconds
            )
            await append(batch)
            # until after the commit: the statements of the pipeline end with it
            settling.enter_context(batch.measure(Stage.SETTLE))
            if tried := tried_on(batch):
                await write_trials(pipeline, tried)
            # in the same transaction as the entries: a crash can neither lose a message nor apply
            # it twice
            await settle(pipeline, batch.settlements, worker=batch.worker)
            # after the settlements, in the transaction that holds the message rows: no lock is
            # taken again
            if batch.postponed:
                await postpone(pipeline, token, [read.message_id for read in batch.postponed])
    return batch


async def append(batch: AppendBatch) -> AppendBatch:
    """Append the batch inside the caller's transaction and pipeline; the caller stores settlements.

    Raises LockedShipmentsError and ArchivedHistoryError before the log is written, to be rolled
    back: `run_transaction` prepares the next try.
    """
    await look_up(batch)
    # pure, and the only place that decides: between the two round trips, under all locks
    batch.decision = decide(batch.proposals, batch.known)
    if batch.wrote:
        # before the projection: a fold needs the versions, and a change names its event's leaf hash
        await assemble(batch)
        await project_events(batch)
        await read_parcel_logs(batch)
    # also without new events: bodies are sealed under the keys of all named shipments
    await write_streams(batch)
    if batch.wrote:
        # after the streams: entries refer to their rows
        await write_entries(batch)
    # late: dead letters follow shipments and dedupe keys in the lock order
    await raise_dead_letters(batch)
    # when conflicts are known: a body is sealed under the holder's key too, so erasing it reaches
    # the body
    batch.settlements = settlements_of(batch.reads, shipments_named(batch), batch.keys)
    return batch


async def assemble(batch: AppendBatch) -> None:
    """Build the rows of events and of new conflicts; repeated conflicts are counted."""
    conflicts, clock, epoch = batch.decision.conflicts, batch.stamp.recorded_at, batch.stamp.epoch
    if conflicts:
        # a contradiction that repeats is counted in one row: each as an entry, a carrier could fill
        # the log
        unseen = await count_conflicts(batch.connection, conflicts, recorded_at=clock)
        pending_streams = await read_streams(
            batch.connection, batch.keyring, (conflict.holder for conflict in conflicts)
        )
        batch.keys.update(
            {
                shipment_id: stream.key
                for shipment_id, stream in (await pending_streams.rows()).items()
            }
        )
        batch.conflicts = assemble_conflicts(unseen, batch.keys, clock=clock, epoch=epoch)
    batch.events = assemble_events(batch.decision.appends, batch.heads, clock=clock, epoch=epoch)


async def project_events(batch: AppendBatch) -> None:
    """Advance the states; a shipment with a late event folds its whole history again."""
    with batch.measure(Stage.PROJECT):
        # without history first: an event that is newer than the state needs none, and most are
        batch.projection = project(batch.events, batch.states, {})
        if missing := batch.projection.missing:
            since = {
                shipment_id: batch.heads[shipment_id].first_recorded_at for shipment_id in missing
            }
            pending_history = await read_events(batch.connection, since)
            history = await pending_history.rows()
            # a fold of a part would be a wrong state that looks right
            require_whole(history, missing, batch.events, batch.heads)
            batch.projection = project(batch.events, batch.states, facts_from_log(history))


def require_whole(
    history: Iterable[tuple[UUID, bytes]],
    shipments: Iterable[UUID],
    events: Iterable[EventRow],
    heads: Mapping[UUID, StreamHead],
) -> None:
    """Require all versions: versions have no gaps, so a missing one is archived.

    Raises ArchivedHistoryError.
    """
    found = Counter(shipment_id for shipment_id, _ in history)
    # the version of the head already counts the events that this batch adds
    found.update(row.proposal.shipment_id for row in events)
    if archived := [
        shipment_id for shipment_id in shipments if found[shipment_id] != heads[shipment_id].version
    ]:
        raise ArchivedHistoryError(archived)


async def raise_dead_letters(batch: AppendBatch) -> None:
    """Raise dead letters for unknown codes, also those read by their category, and for members of a
    message that are not events.
    """
    unknown = [row.proposal for row in batch.events if _code_is_unknown(row.proposal.event)]
    await _raise_codes(batch.connection, unknown, worker=batch.worker)
    await _raise_rejections(batch.connection, batch.reads.values(), worker=batch.worker)


def _code_is_unknown(event: Event) -> bool:
    """Return whether the code is unknown; a correction repeats the code of another event."""
    return event.kind is Kind.UNMAPPED or (event.by_category and event.kind is not Kind.CORRECTION)


def tried_on(batch: AppendBatch) -> list[tuple[str, Settlement]]:
    """Return the messages that foreign candidates are to be tried on."""
    both = zip(batch.reads.values(), batch.settlements, strict=True)
    return [(read.tried_on, settlement) for read, settlement in both if read.tried_on is not None]


def shipments_named(batch: AppendBatch) -> list[tuple[int, UUID]]:
    """Return the shipments that each message (by index) names: with an event, without
    one, or in a conflict.
    """
    return [*batch.named] + [
        (conflict.proposal.message, conflict.holder) for conflict in batch.decision.conflicts
    ]


async def _raise_codes(connection: Sender, unknown: Sequence[Proposal], *, worker: str) -> None:
    """Open a dead letter for each unknown (carrier, type, code), unless it is open already.

    All texts of a carrier share a dead letter. A code that its text contradicts has one for
    each status that the texts state.
    """
    first: dict[tuple[str, str | None, str | None, str], Proposal] = {}
    for proposal in unknown:
        event = proposal.event
        raw, stated = event.raw, "" if event.contradicted is None else event.contradicted.value
        first.setdefault(
            (event.carrier_id, listed_code(raw.type), listed_code(raw.code), stated), proposal
        )
    if not first:
        return
    rows = [
        (
            carrier_id,
            p.source.message_id,
            p.source.received_at,
            raw_type,
            raw_code,
            (Cause.CONTRADICTS_TEXT if stated else Cause.UNKNOWN_CODE).value,
            stated,
            f"{p.source.normalizer}@{p.source.normalizer_version}",
        )
        for (carrier_id, raw_type, raw_code, stated), p in first.items()
    ]
    names = (
        "carrier_ids",
        "message_ids",
        "received_ats",
        "raw_types",
        "raw_codes",
        "causes",
        "details",
        "normalizers",
    )
    await connection.execute(_SQL["raise_codes"], {"worker": worker, **columns(rows, names)})


async def _raise_rejections(connection: Sender, reads: Iterable[Read], *, worker: str) -> None:
    """Open a dead letter for each message with rejected members; it names positions, not values."""
    rows = [
        (
            read.carrier_id,
            read.message_id,
            read.source.received_at,
            "; ".join(
                f"{rejection.pointer or '/'}: {rejection.why}" for rejection in read.rejections[:20]
            ),
            f"{read.source.normalizer}@{read.source.normalizer_version}",
        )
        for read in reads
        if read.rejections
    ]
    if rows:
        names = ("carrier_ids", "message_ids", "received_ats", "details", "normalizers")
        await connection.execute(
            _SQL["raise_rejections"], {"worker": worker, **columns(rows, names)}
        )

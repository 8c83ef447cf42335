"""THE transaction: everything that a batch of messages causes commits together, or nothing of it does.

`append` is its steps, in their order; they need three round trips, whatever the size of the batch: ask, lock, write. A crash before the
commit leaves the messages leased and untouched, a crash after it leaves nothing to do.
A shipment that another transaction has locked holds up its own messages only: a worker sets them aside, and applies the rest.
Lock order: messages, streams (by shipment id), dedupe keys (by carrier and event id), dead letters.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealingKey
from events.entry import NO_PREVIOUS, Leaf, leaf, transition_document
from events.log.assemble import ConflictRow, EventRow, StreamHead, assemble_conflicts, assemble_events
from events.log.proposal import Decision, Key, Known, Proposal, decide, without_personal
from events.vocabulary import Kind, Verdict
from projections.project import Change, Projection, facts_from_log, project
from statesvc.append.outbox import OutboxChange, write_notifications
from statesvc.append.proposals import propose
from statesvc.append.raise_dead_letters import raise_codes, raise_rejections
from statesvc.append.retry import OvertakenError
from statesvc.append.settlements import only_named, settlements_of, split_locked, stream_of
from statesvc.database.pending import Pending
from statesvc.inbox.claim import Settlement, hold, postpone, settle
from statesvc.inbox.read_message import Read
from statesvc.log.archive.log_archive_errors import ArchivedHistoryError
from statesvc.log.batch_row import NO_TICK, Tick, write_batch
from statesvc.log.event_store import (
    NamedStream,
    StreamState,
    count_conflicts,
    insert_aliases,
    insert_keys,
    known_keys,
    limit_lock_waits,
    lock_streams,
    make_streams,
    move_heads,
    open_streams,
    read_events,
    read_streams,
    reserve_streams,
    send_tick,
    write_conflicts,
    write_events,
    write_transitions,
)
from statesvc.shipments.projection_store import read_states, save_shipments
from statesvc.telemetry.names import Stage

Connection = AsyncConnection[Any]
Measure = Callable[[Stage], AbstractContextManager[None]]

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def unmeasured(_: Stage) -> AbstractContextManager[None]:
    """Measures nothing."""
    return nullcontext()


@dataclass(slots=True)
class AppendBatch:
    """Messages on their way into the log, and what each step found or made. `worker` names the process in the log."""

    connection: Connection
    keyring: Keyring
    reads: Sequence[Read]
    worker: str
    measure: Measure = unmeasured
    skips_locked: bool = False
    """Does not wait for shipments that others have locked."""
    sets_aside: bool = False
    """Sets aside the messages of such shipments, and applies the rest."""

    asked_held: Pending[set[UUID]] | None = None
    """Which of the messages the worker still holds; None: they are nobody's lease."""
    # look_up
    proposals: list[Proposal] = field(default_factory=list)
    known: dict[Key, Known] = field(default_factory=dict)
    only_named: Mapping[tuple[int, UUID], NamedStream] = field(default_factory=dict)
    """By message (its place) and shipment: the numbers that the messages say nothing about."""
    # decide
    decision: Decision = field(default_factory=Decision)
    # lock
    heads: dict[UUID, StreamHead] = field(default_factory=dict)
    new_keys: dict[UUID, bytes] = field(default_factory=dict)
    """The sealed keys of the shipments that have no stream yet and that this transaction alone may make."""
    streams: Mapping[UUID, StreamState] = field(default_factory=dict)
    """Those that the messages name and that do not grow, unlocked."""
    keys: dict[UUID, SealingKey | None] = field(default_factory=dict)
    """Of all shipments that the messages name and that have a stream. None: erased."""
    states: Mapping[UUID, Any] = field(default_factory=dict)
    tick: Tick = NO_TICK
    """The wall clock under the locks, the id of the batch, the epoch of the log."""
    # set_aside
    set_aside: list[Read] = field(default_factory=list)
    """The messages of locked shipments: given back uncharged."""
    # open_named
    opened: set[UUID] = field(default_factory=set)
    """Streams that were made, or named again, with nothing but a key."""
    # assemble, project
    events: list[EventRow] = field(default_factory=list)
    conflicts: list[ConflictRow] = field(default_factory=list)
    projection: Projection = field(default_factory=Projection)
    # notify, settle
    written_notifications: Pending[int] | None = None
    notifications: int = 0
    """How many were written to the outbox; known when the transaction has ended."""
    settlements: list[Settlement] = field(default_factory=list)

    @property
    def verdicts(self) -> list[Verdict]:
        """In the order of the events of the messages that are held."""
        return self.decision.verdicts

    @property
    def changes(self) -> list[Change]:
        """What subscribers may hear of."""
        return self.projection.changes

    @property
    def wrote(self) -> bool:
        """Whether the log grew, or a contradiction was counted."""
        return bool(self.decision.appends or self.decision.conflicts or self.decision.aliases)

    def verdicts_by_carrier(self) -> Counter[tuple[str, Verdict]]:
        """For the metrics."""
        return Counter((p.event.carrier_id, verdict) for p, verdict in zip(self.proposals, self.verdicts, strict=True))


async def append_claimed(batch: AppendBatch, *, token: UUID, lock_seconds: float) -> AppendBatch:
    """Appends leased messages and settles them; drops those that the token no longer holds. Raises as `append` does.

    `lock_seconds`: how long it waits for a lock at most. What it set aside is given back, for a short while.
    """
    with ExitStack() as settling:
        async with batch.connection.pipeline(), batch.connection.transaction():
            await limit_lock_waits(batch.connection, lock_seconds)
            batch.asked_held = await hold(batch.connection, token, [read.message_id for read in batch.reads])
            await append(batch)
            # until after the commit: the statements of the pipeline end with it
            settling.enter_context(batch.measure(Stage.SETTLE))
            await settle(batch.connection, batch.settlements, worker=batch.worker)
            if batch.set_aside:
                await postpone(batch.connection, token, [read.message_id for read in batch.set_aside])
        if batch.written_notifications is not None:
            batch.notifications = await batch.written_notifications.rows()
    return batch


async def append(batch: AppendBatch) -> AppendBatch:
    """The steps, inside the caller's transaction and pipeline. Storing the settlements is left to the caller.

    Raises ArchivedHistoryError before anything is written: the caller brings these shipments back and does its transaction again.
    """
    await look_up(batch)
    batch.decision = decide(batch.proposals, batch.known)
    await lock(batch)
    set_aside_locked(batch)
    await open_named(batch)
    if batch.wrote:
        await assemble(batch)
        await project_events(batch)
        await write(batch)
        await notify(batch)
    await raise_dead_letters(batch)
    batch.settlements = settlements_of(batch.reads, shipments_named(batch), batch.keys)
    return batch


async def look_up(batch: AppendBatch) -> None:
    """Proposes the events, and asks what the log holds of them, without a lock: most scans of a push are duplicates.

    Keeps the messages that the worker still holds: the others belong to another one by now.
    """
    batch.proposals, batch.only_named = propose(batch.reads, batch.keyring), only_named(batch.reads)
    asked_known = await known_keys(batch.connection, (key for proposal in batch.proposals for key in proposal.dedupe_keys()))
    if batch.asked_held is not None:
        held = await batch.asked_held.rows()
        restrict(batch, [read for read in batch.reads if read.message_id in held])
    batch.known = await asked_known.rows()


def restrict(batch: AppendBatch, reads: Sequence[Read]) -> None:
    """Goes on with these messages alone."""
    if len(reads) < len(batch.reads):
        batch.reads = reads
        batch.proposals, batch.only_named = propose(reads, batch.keyring), only_named(reads)
        forget_erased(batch)


def forget_erased(batch: AppendBatch) -> bool:
    """Takes what is personal out of what is proposed to erased shipments; whether there are any."""
    erased = {each for each, key in batch.keys.items() if key is None}
    if erased:
        batch.proposals = [without_personal(each) if each.shipment_id in erased else each for each in batch.proposals]
    return bool(erased)


async def lock(batch: AppendBatch) -> None:
    """Looks at the streams that grow and locks them, reserves the new ones, and reads states and clock under the locks.

    Streams that do not grow are read for their keys. What follows asks nothing again: a dedupe key that another takes meanwhile fails
    the write of it, and keys that a locked stream guards are asked for again under its lock.
    """
    connection, growing, skips = batch.connection, batch.decision.shipments(), batch.skips_locked
    others = {each for _, each in named_by(batch)} - growing
    asked_streams = await read_streams(connection, batch.keyring, others) if others else None
    taken: Mapping[Key, Known] = {}
    if batch.wrote:
        asked_heads = await lock_streams(connection, batch.keyring, growing, skips_locked=skips)
        asked_new = await reserve_streams(connection, growing, skips_locked=skips, bounded=batch.sets_aside)
        asked_taken = await known_keys(connection, guarded) if (guarded := batch.decision.guarded_keys()) else None
        asked_states = await read_states(connection, growing)
        asked_tick = await send_tick(connection)
        batch.heads = await asked_heads.rows()
        for new in await asked_new.rows() - batch.heads.keys():
            key = SealingKey.fresh()
            batch.new_keys[new] = batch.keyring.seal_shipment_key(key, new)
            batch.heads[new] = StreamHead(0, NO_PREVIOUS, _NEVER, _NEVER, key)
        taken = await asked_taken.rows() if asked_taken is not None else {}
        batch.known.update(taken)
        batch.states, batch.tick = await asked_states.rows(), await asked_tick.rows()
        batch.keys = {each: head.key for each, head in batch.heads.items()}
    if asked_streams is not None:
        batch.streams = await asked_streams.rows()
        batch.keys.update({each: stream.key for each, stream in batch.streams.items()})
    if forget_erased(batch) or taken:
        batch.decision = decide(batch.proposals, batch.known)


def named_by(batch: AppendBatch) -> Iterator[tuple[int, UUID]]:
    """The shipments that each message (by its place) names, whether or not it says anything about them."""
    yield from ((proposal.message, proposal.shipment_id) for proposal in batch.proposals)
    yield from batch.only_named


def set_aside_locked(batch: AppendBatch) -> None:
    """Sets aside the messages that name a shipment which another transaction has locked. Raises OvertakenError."""
    while missing := batch.decision.shipments() - batch.heads.keys():
        set_aside(batch, missing)
    # a stream that was reserved and does not grow after all is not made
    for each in batch.new_keys.keys() - batch.decision.shipments():
        del batch.new_keys[each], batch.heads[each], batch.keys[each]


def set_aside(batch: AppendBatch, locked: Collection[UUID]) -> None:
    """Sets aside the messages that name one of these shipments, and later ones that name any of theirs.

    Raises OvertakenError where they are not to be set aside.
    """
    if not batch.sets_aside:
        raise OvertakenError(locked)
    going_on, aside = split_locked(batch.reads, named_by(batch), locked)
    batch.set_aside += aside
    restrict(batch, going_on)
    batch.decision = decide(batch.proposals, batch.known)


async def open_named(batch: AppendBatch) -> None:
    """Makes streams with nothing but a key for what the messages name and nothing is appended to: their bodies are under it as well.

    One that is there already may be about to be forgotten, so it is named again. Like a shipment that grows, one that another transaction
    has locked or is making holds up the messages that name it, and no others. Raises OvertakenError.
    """
    connection, keyring, skips = batch.connection, batch.keyring, batch.skips_locked
    while missing := streams_to_open(batch):
        opened = await (await open_streams(connection, keyring, missing, skips_locked=skips, bounded=batch.sets_aside)).rows()
        batch.keys.update(opened)
        batch.opened |= opened.keys()
        if locked := missing.keys() - opened.keys():
            set_aside(batch, locked)
            set_aside_locked(batch)


def streams_to_open(batch: AppendBatch) -> dict[UUID, NamedStream]:
    """The streams that the messages name, that do not grow, and that may be about to be forgotten or are not there."""
    wanted = {shipment: stream for (_, shipment), stream in batch.only_named.items()}
    wanted |= {each.shipment_id: stream_of(each) for each in batch.proposals if each.shipment_id not in batch.keys}
    lasting = {shipment for shipment, stream in batch.streams.items() if stream.version > 0 or stream.key is None}
    lasting |= batch.heads.keys() | batch.opened
    return {shipment: stream for shipment, stream in wanted.items() if shipment not in lasting}


async def assemble(batch: AppendBatch) -> None:
    """Makes the rows of events, and of conflicts that were never seen before; repeated ones are counted."""
    conflicts, clock, epoch = batch.decision.conflicts, batch.tick.recorded_at, batch.tick.epoch
    if conflicts:
        unseen = await count_conflicts(batch.connection, conflicts)
        asked = await read_streams(batch.connection, batch.keyring, (conflict.holder for conflict in conflicts))
        batch.keys.update({shipment_id: stream.key for shipment_id, stream in (await asked.rows()).items()})
        batch.conflicts = assemble_conflicts(unseen, batch.keys, clock=clock, epoch=epoch)
    batch.events = assemble_events(batch.decision.appends, batch.heads, clock=clock, epoch=epoch)


async def project_events(batch: AppendBatch) -> None:
    """Advances the states; a shipment with a late event folds its whole history again."""
    with batch.measure(Stage.PROJECT):
        batch.projection = project(batch.events, batch.states, {})
        if missing := batch.projection.missing:
            since = {shipment_id: batch.heads[shipment_id].first_recorded_at for shipment_id in missing}
            asked_history = await read_events(batch.connection, since)
            history = await asked_history.rows()
            require_whole(history, missing, batch.events, batch.heads)
            batch.projection = project(batch.events, batch.states, facts_from_log(history))


def require_whole(
    history: Iterable[tuple[UUID, bytes]], shipments: Iterable[UUID], events: Iterable[EventRow], heads: Mapping[UUID, StreamHead]
) -> None:
    """Versions have no gaps, so it shows by itself what is archived. Raises ArchivedHistoryError."""
    found = Counter(shipment_id for shipment_id, _ in history)
    found.update(row.proposal.shipment_id for row in events)
    if archived := [shipment_id for shipment_id in shipments if found[shipment_id] != heads[shipment_id].version]:
        raise ArchivedHistoryError(archived)


async def write(batch: AppendBatch) -> None:
    """Writes the entries (events, conflicts, transitions), their batch row, and the states."""
    connection, (recorded_at, batch_id, epoch) = batch.connection, batch.tick
    events, conflicts = batch.events, batch.conflicts
    transitions = [(change, transition_leaf(change, batch.worker, epoch=epoch)) for change in batch.changes if change.is_transition]
    if batch.decision.aliases:
        await insert_aliases(connection, batch.decision.aliases)
    if events:
        await write_heads(batch)
        await insert_keys(connection, batch.decision.appends)
        await write_events(connection, events, batch_id=batch_id)
        await save_shipments(connection, batch.projection.shipments, batch.heads)
    if conflicts:
        await write_conflicts(connection, conflicts, batch_id=batch_id, before=len(events), recorded_at=recorded_at)
    if transitions:
        rows = [(change.row, change.from_status, change.to_status, entry) for change, entry in transitions]
        before = len(events) + len(conflicts)
        await write_transitions(connection, rows, batch_id=batch_id, before=before, worker=batch.worker)
    leaves = [row.leaf for row in events] + [row.leaf for row in conflicts] + [entry for _, entry in transitions]
    if leaves:
        leaf_hashes = [entry.leaf_hash for entry in leaves]
        times = {row.recorded_at for row in events} | {row.recorded_at for row in conflicts}
        await write_batch(
            connection, batch_id=batch_id, recorded_at=min(times), recorded_to=max(times), leaf_hashes=leaf_hashes, writer=batch.worker
        )


async def write_heads(batch: AppendBatch) -> None:
    """Makes the new streams, moves the others on."""
    moved = {each: head for each, head in batch.heads.items() if head.moved}
    first = {row.proposal.shipment_id: row.proposal for row in reversed(batch.events)}
    if new := [
        (first[shipment_id], head, batch.new_keys[shipment_id]) for shipment_id, head in moved.items() if shipment_id in batch.new_keys
    ]:
        await make_streams(batch.connection, new)
    if existing := {shipment_id: head for shipment_id, head in moved.items() if shipment_id not in batch.new_keys}:
        await move_heads(batch.connection, existing)


def transition_leaf(change: Change, worker: str, *, epoch: int) -> Leaf:
    """The entry of a change of status."""
    proposal = change.row.proposal
    return leaf(
        transition_document(
            shipment_id=proposal.shipment_id,
            sequence=change.row.version,
            from_status=change.from_status,
            to_status=change.to_status,
            event_id=proposal.event.event_id,
            worker=worker,
            message_id=proposal.source.message_id,
            recorded_at=change.row.recorded_at,
        ),
        epoch=epoch,
    )


async def notify(batch: AppendBatch) -> None:
    """Puts the notifications into the outbox."""
    if batch.changes:
        batch.written_notifications = await write_notifications(batch.connection, [OutboxChange.of(change) for change in batch.changes])


async def raise_dead_letters(batch: AppendBatch) -> None:
    """For codes that nobody knows yet, and for members of a message that are no events."""
    unmapped = [row.proposal for row in batch.events if row.proposal.event.kind is Kind.UNMAPPED]
    await raise_codes(batch.connection, unmapped, worker=batch.worker)
    await raise_rejections(batch.connection, batch.reads, worker=batch.worker)


def shipments_named(batch: AppendBatch) -> list[tuple[int, UUID]]:
    """The shipments that each message (by its place) names: with an event, without one, or because it contradicts them."""
    named = [(proposal.message, proposal.shipment_id) for proposal in batch.proposals]
    return named + [*batch.only_named] + [(conflict.proposal.message, conflict.holder) for conflict in batch.decision.conflicts]

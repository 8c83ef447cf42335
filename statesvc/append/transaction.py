"""THE transaction: everything that a batch of messages causes commits together, or nothing of it does.

`append` is its steps, in their order; they need four round trips, whatever the size of the batch. A crash before the commit leaves the
messages leased and untouched, a crash after it leaves nothing to do.
Lock order: messages, streams (by shipment id), dedupe keys (by carrier and event id), dead letters.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.errors import SerializationFailure

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealingKey
from events.entry import Leaf, leaf, transition_document
from events.identity import shipment_id
from events.log.assemble import ConflictRow, EventRow, StreamHead, assemble_conflicts, assemble_events
from events.log.proposal import Decision, Key, Known, Proposal, decide, without_personal
from events.vocabulary import Kind, Verdict
from projections.project import Change, Projection, facts_from_log, project
from statesvc.append.outbox import OutboxChange, write_notifications
from statesvc.append.proposals import propose
from statesvc.append.raise_dead_letters import raise_codes, raise_rejections
from statesvc.bodies.body_key import wrap_body_key
from statesvc.database.pending import Pending
from statesvc.inbox.claim import Settlement, hold, settle
from statesvc.inbox.read_message import Read
from statesvc.log.archive.log_archive_errors import ArchivedHistoryError
from statesvc.log.batch_row import write_batch
from statesvc.log.event_store import (
    NamedStream,
    StreamState,
    count_conflicts,
    insert_keys,
    known_keys,
    lock_streams,
    open_streams,
    read_events,
    read_streams,
    send_tick,
    untouched,
    write_conflicts,
    write_events,
    write_keys,
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

    # look_up
    proposals: list[Proposal] = field(default_factory=list)
    streams: Mapping[UUID, StreamState] = field(default_factory=dict)
    known: Mapping[Key, Known] = field(default_factory=dict)
    keys: dict[UUID, SealingKey | None] = field(default_factory=dict)
    """Of all shipments that the messages name and that have a stream. None: erased."""
    only_named: Mapping[tuple[int, UUID], NamedStream] = field(default_factory=dict)
    """By message (its place) and shipment: the numbers that the messages say nothing about."""
    # decide
    decision: Decision = field(default_factory=Decision)
    # lock
    heads: dict[UUID, StreamHead] = field(default_factory=dict)
    free_keys: set[Key] = field(default_factory=set)
    states: Mapping[UUID, Any] = field(default_factory=dict)
    recorded_at: datetime = _NEVER
    """The wall clock under the locks."""
    batch_id: int = 0
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


async def append_claimed(batch: AppendBatch, *, token: UUID) -> AppendBatch:
    """Appends leased messages and settles them; drops those that the token no longer holds. Raises as `append` does."""
    with ExitStack() as settling:
        async with batch.connection.pipeline(), batch.connection.transaction():
            await hold_messages(batch, token)
            await append(batch)
            # until after the commit: the statements of the pipeline end with it
            settling.enter_context(batch.measure(Stage.SETTLE))
            await settle(batch.connection, batch.settlements, worker=batch.worker)
        if batch.written_notifications is not None:
            batch.notifications = await batch.written_notifications.rows()
    return batch


async def append(batch: AppendBatch) -> AppendBatch:
    """The steps, inside the caller's transaction and pipeline. Storing the settlements is left to the caller.

    Raises ArchivedHistoryError before anything is written: the caller brings these shipments back and does its transaction again.
    """
    await look_up(batch)
    batch.decision = decide(batch.proposals, batch.known)
    if batch.wrote:
        await lock(batch)
        await decide_again(batch)
    await open_named(batch)
    if batch.wrote:
        await assemble(batch)
        await project_events(batch)
        await write(batch)
        await notify(batch)
    await raise_dead_letters(batch)
    batch.settlements = settlements_of(batch.reads, shipments_named(batch), batch.keys)
    return batch


async def hold_messages(batch: AppendBatch, token: UUID) -> None:
    """Locks the messages, and keeps those that the token still holds: the others belong to another worker by now."""
    asked = await hold(batch.connection, token, [read.message_id for read in batch.reads])
    held = await asked.rows()
    batch.reads = [read for read in batch.reads if read.message_id in held]


async def look_up(batch: AppendBatch) -> None:
    """Proposes the events, and asks what the log holds of them, without a lock: most scans of a push are duplicates.

    The streams are asked before the keys, so that `untouched` can find out later whether anyone wrote in between.
    """
    batch.proposals = propose(batch.reads, batch.keyring)
    batch.only_named = only_named(batch.reads)
    if not batch.proposals and not batch.only_named:
        return
    named = {proposal.shipment_id for proposal in batch.proposals} | {shipment for _, shipment in batch.only_named}
    asked_streams = await read_streams(batch.connection, batch.keyring, named)
    asked_known = await known_keys(batch.connection, (key for proposal in batch.proposals for key in proposal.dedupe_keys()))
    batch.streams, batch.known = await asked_streams.rows(), await asked_known.rows()
    batch.keys = {shipment_id: stream.key for shipment_id, stream in batch.streams.items()}
    forget_erased(batch, {shipment_id for shipment_id, key in batch.keys.items() if key is None})


def forget_erased(batch: AppendBatch, erased: Collection[UUID]) -> None:
    """Takes what is personal out of what is proposed to erased shipments."""
    if erased:
        batch.proposals = [without_personal(each) if each.shipment_id in erased else each for each in batch.proposals]


async def lock(batch: AppendBatch) -> None:
    """Locks the streams that grow, takes the dedupe keys, and reads states and clock under the locks."""
    appends, shipments = batch.decision.appends, batch.decision.shipments()
    asked_heads = await lock_streams(batch.connection, batch.keyring, appends, batch.streams)
    asked_free = await insert_keys(batch.connection, appends)
    asked_states = await read_states(batch.connection, shipments)
    asked_tick = await send_tick(batch.connection)
    batch.heads, batch.free_keys = await asked_heads.rows(), await asked_free.rows()
    batch.states, (batch.recorded_at, batch.batch_id) = await asked_states.rows(), await asked_tick.rows()
    batch.keys.update({shipment_id: head.key for shipment_id, head in batch.heads.items()})


async def decide_again(batch: AppendBatch) -> None:
    """Repeats the decision if others took a key or a stream between the reads and the locks.

    Raises SerializationFailure where one was erased: the transaction begins again.
    """
    if any(head.key is None and ((read := batch.streams.get(each)) is None or read.key) for each, head in batch.heads.items()):
        # what was proposed, and the keys that are taken by now, hold digests of a person
        raise SerializationFailure("a shipment was erased between the reads and the locks")
    if untouched(batch.free_keys, batch.decision.appends, batch.heads, batch.streams):
        return
    unknown = (key for proposal in batch.proposals for key in proposal.dedupe_keys() if key not in batch.known)
    asked_taken = await known_keys(batch.connection, unknown)
    taken = await asked_taken.rows()
    by_others = {key: holder for key, holder in taken.items() if key not in batch.free_keys}
    batch.decision = decide(batch.proposals, {**batch.known, **by_others})


async def open_named(batch: AppendBatch) -> None:
    """Makes streams with nothing but a key for what the messages name and nothing is appended to: their bodies are under it as well.

    One that is there already may be about to be forgotten, so it is named again.
    """
    wanted = {shipment: stream for (_, shipment), stream in batch.only_named.items()}
    for proposal in batch.proposals:
        if proposal.shipment_id not in batch.keys:
            wanted[proposal.shipment_id] = NamedStream(
                proposal.event.carrier_id, proposal.number, proposal.event.discriminator, proposal.source.received_at
            )
    lasting = {shipment for shipment, stream in batch.streams.items() if stream.version > 0 or stream.key is None} | batch.heads.keys()
    if missing := {shipment: stream for shipment, stream in wanted.items() if shipment not in lasting}:
        opened = await open_streams(batch.connection, batch.keyring, missing)
        batch.keys.update(await opened.rows())


async def assemble(batch: AppendBatch) -> None:
    """Makes the rows of events, and of conflicts that were never seen before; repeated ones are counted."""
    conflicts = batch.decision.conflicts
    if conflicts:
        unseen = await count_conflicts(batch.connection, conflicts)
        asked = await read_streams(batch.connection, batch.keyring, (conflict.holder for conflict in conflicts))
        batch.keys.update({shipment_id: stream.key for shipment_id, stream in (await asked.rows()).items()})
        batch.conflicts = assemble_conflicts(unseen, batch.keys, clock=batch.recorded_at)
    batch.events = assemble_events(batch.decision.appends, batch.heads, clock=batch.recorded_at)


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
    connection, batch_id = batch.connection, batch.batch_id
    events, conflicts = batch.events, batch.conflicts
    transitions = [(change, transition_leaf(change, batch.worker)) for change in batch.changes if change.is_transition]
    await write_keys(connection, batch.decision)
    if events:
        await write_events(connection, events, heads=batch.heads, batch_id=batch_id)
        await save_shipments(connection, batch.projection.shipments, batch.heads)
    if conflicts:
        await write_conflicts(connection, conflicts, batch_id=batch_id, before=len(events), recorded_at=batch.recorded_at)
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


def transition_leaf(change: Change, worker: str) -> Leaf:
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
        )
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


def only_named(reads: Sequence[Read]) -> dict[tuple[int, UUID], NamedStream]:
    """The shipments that messages (by their place) name without an event; a bare number has no discriminator."""
    return {
        (place, shipment_id(read.carrier_id, number, "")): NamedStream(read.carrier_id, number, "", read.source.received_at)
        for place, read in enumerate(reads)
        for number in read.numbers
    }


def settlements_of(reads: Sequence[Read], named: Iterable[tuple[int, UUID]], keys: Mapping[UUID, SealingKey | None]) -> list[Settlement]:
    """`named`: the shipments that the messages (by their place) name."""
    shipments: list[set[UUID]] = [set() for _ in reads]
    for place, shipment in named:
        if shipment in keys:
            shipments[place].add(shipment)
    return [_settlement(read, sorted(its), keys) for read, its in zip(reads, shipments, strict=True)]


def _settlement(read: Read, shipments: list[UUID], keys: Mapping[UUID, SealingKey | None]) -> Settlement:
    """Wraps the body's key once for all shipments that the message names: erasing any one makes the body unreadable."""
    sealed: bytes | None = read.sealed_key if read.keeps_body else None
    if shipments and read.keeps_body:
        sealed = wrap_body_key(read.body_key, shipments, message_id=read.message_id, keys=keys)
    return Settlement(
        message_id=read.message_id,
        events=len(read.events),
        empty=read.empty,
        normalizer=read.normalizer,
        shipments=tuple(shipments),
        sealed_key=sealed,
    )

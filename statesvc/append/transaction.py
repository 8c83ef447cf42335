"""Applying a batch: append, project, tell, settle, in one transaction and four round trips, whatever its size.

Everything that a message causes commits together with its verdict, so a crash before the commit leaves it leased and
untouched, and a crash after it leaves nothing to do. Lock order: messages, streams, dedupe keys, dead letters.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring, body_context
from events.crypto.sealing import SealingKey
from events.entry import Leaf, leaf, transition_document
from events.log.assemble import ConflictRow, EventRow, StreamHead, assemble_conflicts, assemble_events
from events.log.proposal import Decision, Key, Known, Proposal, decide
from events.vocabulary import Kind, Verdict
from projections.project import Change, Projection, facts_from_log, project
from statesvc.append.outbox import Change as Told
from statesvc.append.outbox import write_notifications
from statesvc.append.passage import GiveWay, breathe
from statesvc.append.proposals import propose
from statesvc.append.raise_dead_letters import raise_codes, raise_rejections
from statesvc.database.pending import Pending
from statesvc.inbox.claim import Settlement, hold, settle
from statesvc.inbox.read_message import Read
from statesvc.log.archive.log_archive_errors import ArchivedHistoryError
from statesvc.log.batch_row import write_batch
from statesvc.log.event_store import (
    StreamState,
    count_conflicts,
    insert_keys,
    known_keys,
    lock_streams,
    read_events,
    read_streams,
    send_tick,
    untouched,
    write_conflicts,
    write_events,
    write_transitions,
)
from statesvc.shipments.projection_store import read_states, save_shipments
from statesvc.telemetry.names import Stage

Connection = AsyncConnection[Any]
_AT_ONCE: Final = 64
"""Messages or events that are worked on without a pause."""


Timer = Callable[[Stage], AbstractContextManager[None]]


def untimed(_: Stage) -> AbstractContextManager[None]:
    """A timer that measures nothing."""
    return nullcontext()


@dataclass(slots=True)
class Applied:
    """What a batch did. `verdicts` stand in the order of the events of the held messages."""

    held: list[Read] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    carriers: Counter[tuple[str, Verdict]] = field(default_factory=Counter)
    changes: list[Change] = field(default_factory=list)
    raised: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Flags that shipments got, by carrier."""
    told: Pending[int] | None = None
    notifications: int = 0
    """How many were written to the outbox; known when the transaction has ended."""
    settlements: list[Settlement] = field(default_factory=list)
    wrote: bool = False
    """Whether the log grew, or a contradiction was counted."""


async def apply_claimed(
    connection: Connection,
    keyring: Keyring,
    reads: Sequence[Read],
    *,
    token: UUID,
    worker: str,
    timed: Timer = untimed,
    give_way: GiveWay = breathe,
) -> Applied:
    """Applies leased messages and settles them; drops those that the token no longer holds. `timed` measures the stages."""
    with ExitStack() as settling:
        async with connection.pipeline(), connection.transaction():
            held = await hold(connection, token, [read.message_id for read in reads])
            kept = await held.rows()
            mine = [read for read in reads if read.message_id in kept]
            applied = await apply(connection, keyring, mine, worker=worker, timed=timed, give_way=give_way)
            # until after the commit: the statements of the pipeline end with it
            settling.enter_context(timed(Stage.SETTLE))
            if applied.settlements:
                await settle(connection, applied.settlements, worker=worker)
        if applied.told is not None:
            applied.notifications = await applied.told.rows()
    return applied


async def apply(
    connection: Connection, keyring: Keyring, reads: Sequence[Read], *, worker: str, timed: Timer = untimed, give_way: GiveWay = breathe
) -> Applied:
    """Appends, projects and tells, inside the caller's transaction and pipeline; leaves settling to the caller.

    Between its parts it calls `give_way`: what else the process has to do does not wait for the whole batch.

    Raises ArchivedHistoryError before it writes: the caller brings these shipments back and does its transaction again.
    """
    applied = Applied(held=list(reads))
    proposals: list[Proposal] = []
    for start in range(0, len(reads), _AT_ONCE):
        proposals += propose(reads[start : start + _AT_ONCE], keyring, first=start)
        await give_way()
    keys: dict[UUID, SealingKey | None] = {}
    named = [(proposal.message, proposal.shipment_id) for proposal in proposals]
    if proposals:
        asked_streams = await read_streams(connection, keyring, (proposal.shipment_id for proposal in proposals))
        asked_known = await known_keys(connection, (key for proposal in proposals for key in proposal.dedupe_keys()))
        streams, known = await asked_streams.rows(), await asked_known.rows()
        await give_way()
        keys = {shipment_id: stream.key for shipment_id, stream in streams.items()}
        decision = decide(proposals, known)
        if decision.appends or decision.conflicts:
            decision, projection, applied.told = await _append(
                connection, _Batch(keyring, proposals, known, streams, keys, worker, timed, give_way), decision
            )
            applied.changes, applied.raised = projection.changes, projection.raised
        named += [(conflict.proposal.message, conflict.holder) for conflict in decision.conflicts]
        applied.verdicts = decision.verdicts
        applied.wrote = bool(decision.appends or decision.conflicts)
        applied.carriers.update((p.event.carrier_id, verdict) for p, verdict in zip(proposals, decision.verdicts, strict=True))
    await raise_rejections(connection, reads, worker=worker)
    await give_way()
    applied.settlements = _settlements(reads, named, keys)
    return applied


@dataclass(frozen=True, slots=True)
class _Batch:
    keyring: Keyring
    proposals: Sequence[Proposal]
    known: Mapping[Key, Known]
    streams: Mapping[UUID, StreamState]
    keys: dict[UUID, SealingKey | None]
    worker: str
    timed: Timer
    give_way: GiveWay


async def _append(connection: Connection, batch: _Batch, first: Decision) -> tuple[Decision, Projection, Pending[int] | None]:
    """Locks, takes the keys, decides again with what others took meanwhile, and writes.

    Returns the final decision, what it means, and how many are told.
    """
    keyring, proposals = batch.keyring, batch.proposals
    asked_heads = await lock_streams(connection, keyring, first.appends, batch.streams)
    asked_free = await insert_keys(connection, first.appends)
    asked_states = await read_states(connection, first.shipments())
    asked_tick = await send_tick(connection)
    heads, free = await asked_heads.rows(), await asked_free.rows()
    states, (clock, batch_id) = await asked_states.rows(), await asked_tick.rows()
    await batch.give_way()
    batch.keys.update({shipment_id: head.key for shipment_id, head in heads.items()})
    decision = first
    if not untouched(free, first.appends, heads, batch.streams):
        asked_taken = await known_keys(connection, (key for p in proposals for key in p.dedupe_keys() if key not in batch.known))
        taken = await asked_taken.rows()
        decision = decide(proposals, {**batch.known, **{key: value for key, value in taken.items() if key not in free}})

    conflicts = await _new_conflicts(connection, keyring, decision, batch.keys, clock)
    rows: list[EventRow] = []
    for start in range(0, len(decision.appends), _AT_ONCE):
        rows += assemble_events(decision.appends[start : start + _AT_ONCE], heads, clock=clock)
        await batch.give_way()
    with batch.timed(Stage.PROJECT):
        projection = project(rows, states, {})
        if projection.missing:
            asked_history = await read_events(
                connection, {shipment_id: heads[shipment_id].first_recorded_at for shipment_id in projection.missing}
            )
            projection = project(rows, states, facts_from_log(_whole(await asked_history.rows(), projection.missing, rows, heads)))
    await batch.give_way()
    told = await _write(connection, _Writing(decision, rows, conflicts, heads, projection, batch_id, clock), batch)
    return decision, projection, told


def _whole(
    history: list[tuple[UUID, bytes]], shipments: Iterable[UUID], rows: Sequence[EventRow], heads: Mapping[UUID, StreamHead]
) -> list[tuple[UUID, bytes]]:
    """Versions have no gaps, so what is archived shows by itself. Raises ArchivedHistoryError."""
    found = Counter(shipment_id for shipment_id, _ in history)
    found.update(row.proposal.shipment_id for row in rows)
    if away := [shipment_id for shipment_id in shipments if found[shipment_id] != heads[shipment_id].version]:
        raise ArchivedHistoryError(away)
    return history


async def _new_conflicts(
    connection: Connection, keyring: Keyring, decision: Decision, keys: dict[UUID, SealingKey | None], clock: datetime
) -> list[ConflictRow]:
    if not decision.conflicts:
        return []
    unseen = await count_conflicts(connection, decision.conflicts)
    asked = await read_streams(connection, keyring, (conflict.holder for conflict in decision.conflicts))
    keys.update({shipment_id: stream.key for shipment_id, stream in (await asked.rows()).items()})
    return assemble_conflicts(unseen, keys, clock=clock)


@dataclass(frozen=True, slots=True)
class _Writing:
    decision: Decision
    rows: list[EventRow]
    conflicts: list[ConflictRow]
    heads: Mapping[UUID, StreamHead]
    projection: Projection
    batch_id: int
    clock: datetime


async def _write(connection: Connection, writing: _Writing, batch: _Batch) -> Pending[int] | None:
    """Writes everything of the batch; answers how many notifications that made."""
    rows, conflicts, batch_id, worker = writing.rows, writing.conflicts, writing.batch_id, batch.worker
    transitions = [(change, _transition_leaf(change, worker)) for change in writing.projection.changes if change.is_transition]
    if rows:
        await write_events(connection, rows, reserved=writing.decision.reserved, heads=writing.heads, batch_id=batch_id)
        await batch.give_way()
        await save_shipments(connection, writing.projection.shipments, writing.heads)
        await batch.give_way()
    if conflicts:
        await write_conflicts(connection, conflicts, batch_id=batch_id, before=len(rows), recorded_at=writing.clock)
    if transitions:
        await write_transitions(
            connection,
            [(change.row, change.from_status, change.to_status, entry) for change, entry in transitions],
            batch_id=batch_id,
            before=len(rows) + len(conflicts),
            worker=worker,
        )
    leaves = [row.leaf for row in rows] + [row.leaf for row in conflicts] + [entry for _, entry in transitions]
    await batch.give_way()
    if leaves:
        await write_batch(
            connection, batch_id=batch_id, recorded_at=writing.clock, leaf_hashes=[entry.leaf_hash for entry in leaves], writer=worker
        )
    told = None
    if writing.projection.changes:
        told = await write_notifications(connection, [_told(change) for change in writing.projection.changes])
    await raise_codes(connection, [row.proposal for row in rows if row.proposal.event.kind is Kind.UNMAPPED], worker=worker)
    return told


def _transition_leaf(change: Change, worker: str) -> Leaf:
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


def _told(change: Change) -> Told:
    event = change.row.proposal.event
    return Told(
        shipment_id=change.shipment_id,
        sequence=change.row.version,
        type="shipment.status_changed" if change.is_transition else "shipment.updated",
        carrier_id=event.carrier_id,
        tracking_number=event.tracking_number,
        from_status=change.from_status,
        to_status=change.to_status,
        occurred_at=event.occurred_at,
    )


def _settlements(reads: Sequence[Read], named: Iterable[tuple[int, UUID]], keys: Mapping[UUID, SealingKey | None]) -> list[Settlement]:
    """`named`: the shipments that the messages (by their place) name; one without a stream has no key."""
    shipments: list[set[UUID]] = [set() for _ in reads]
    for place, shipment_id in named:
        if shipment_id in keys:
            shipments[place].add(shipment_id)
    return [_settlement(read, sorted(its), keys) for read, its in zip(reads, shipments, strict=True)]


def _settlement(read: Read, shipments: list[UUID], keys: Mapping[UUID, SealingKey | None]) -> Settlement:
    """Wraps the body's key under the keys of all shipments that the message names: erasing any one makes the body unreadable."""
    sealed: bytes | None = read.sealed_key
    if shipments:
        sealed = read.body_key.key
        for shipment_id in shipments:
            key = keys[shipment_id]
            if key is None:
                sealed = None
                break
            sealed = key.seal(sealed, body_context(read.message_id))
    return Settlement(
        message_id=read.message_id,
        events=len(read.events),
        empty=read.empty,
        normalizer=read.normalizer,
        shipments=tuple(shipments),
        sealed_key=sealed,
    )

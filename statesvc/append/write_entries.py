"""Everything that a batch adds to the log, in its order, with the states and notifications that follow from it."""

from events.entry import Leaf, leaf, transition_document
from projections.project import Change
from statesvc.append.append_batch import AppendBatch
from statesvc.append.outbox import OutboxChange, fan_out, fanout_of, write_notifications
from statesvc.log.batch_row import write_batch
from statesvc.log.event_store import (
    insert_aliases,
    insert_keys,
    make_streams,
    move_heads,
    write_conflicts,
    write_events,
    write_transitions,
)
from statesvc.log.fanouts import append_fanouts
from statesvc.shipments.expectation_rules import rule_book
from statesvc.shipments.projection_store import save_shipments


async def write(batch: AppendBatch) -> None:
    """Writes the entries (events, conflicts, transitions, fan-outs), their batch row, and the states."""
    if batch.decision.aliases:
        await insert_aliases(batch.connection, batch.decision.aliases)
    leaf_hashes = await write_statements(batch)
    leaf_hashes += await write_conclusions(batch, before=len(leaf_hashes))
    leaf_hashes += await notify(batch, before=len(leaf_hashes))
    if leaf_hashes:
        times = {row.recorded_at for row in batch.events} | {row.recorded_at for row in batch.conflicts}
        await write_batch(
            batch.connection,
            batch_id=batch.tick.batch_id,
            recorded_at=min(times),
            recorded_to=max(times),
            leaf_hashes=leaf_hashes,
            writer=batch.worker,
        )


async def write_statements(batch: AppendBatch) -> list[bytes]:
    """What was said: events, which move heads and states, and conflicts. Answers the leaf hashes, as the next ones do."""
    connection, events, conflicts = batch.connection, batch.events, batch.conflicts
    if events:
        await write_heads(batch)
        await insert_keys(connection, batch.decision.appends)
        await write_events(connection, events, batch_id=batch.tick.batch_id)
        await save_shipments(connection, batch.projection.shipments, batch.heads, rule_book(batch.tick.expectations))
    if conflicts:
        await write_conflicts(connection, conflicts, batch_id=batch.tick.batch_id, before=len(events), recorded_at=batch.tick.recorded_at)
    return [row.leaf.leaf_hash for row in events] + [row.leaf.leaf_hash for row in conflicts]


async def write_conclusions(batch: AppendBatch, *, before: int) -> list[bytes]:
    """What follows from it: transitions."""
    transitions = [
        (change, transition_leaf(change, batch.worker, epoch=batch.tick.epoch)) for change in batch.changes if change.is_transition
    ]
    if transitions:
        rows = [(change.row, change.from_status, change.to_status, entry) for change, entry in transitions]
        await write_transitions(batch.connection, rows, batch_id=batch.tick.batch_id, before=before, worker=batch.worker)
    return [entry.leaf_hash for _, entry in transitions]


async def notify(batch: AppendBatch, *, before: int) -> list[bytes]:
    """Who is notified: fan-outs, and the notifications in the outbox."""
    fanned_out = fan_out((OutboxChange.of(change, batch.traceparents) for change in batch.changes), batch.subscribed)
    batch.notifications = await write_notifications(batch.connection, fanned_out, epoch=batch.tick.epoch)
    fanouts = [fanout_of(change, subscriptions) for change, subscriptions in fanned_out]
    return await append_fanouts(batch.connection, fanouts, now=batch.tick, before=before)


async def write_heads(batch: AppendBatch) -> None:
    """Makes the new streams, moves the others on."""
    moved = {each: head for each, head in batch.heads.items() if head.moved}
    if batch.new_keys:
        first = {row.proposal.shipment_id: row.proposal for row in reversed(batch.events)}
        await make_streams(batch.connection, [(first[each], moved.pop(each), sealed_key) for each, sealed_key in batch.new_keys.items()])
    if moved:
        await move_heads(batch.connection, moved)


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

"""Everything that a batch adds to the log, in its order, with the states and
notifications that follow from it.
"""

from events.entry.kinds import Leaf, leaf, transition_document
from projections.project import Change
from statesvc.append.append_batch import AppendBatch
from statesvc.append.outbox import (
    OutboxChange,
    fan_out,
    fanout_of,
    shared_parcel_changes,
    write_notifications,
)
from statesvc.log.batch_row import write_batch
from statesvc.log.event_store import (
    insert_aliases,
    insert_keys,
    make_streams,
    move_heads,
    name_streams,
    write_conflicts,
    write_events,
    write_transitions,
)
from statesvc.log.fanouts import append_fanouts
from statesvc.shipments.expectation_rules import rule_book
from statesvc.shipments.projection_store import save_shipments


async def write_streams(batch: AppendBatch) -> None:
    """Create the new streams and advance the heads of the others.

    A stream that messages name without adding to it holds only a key, because their bodies are
    sealed under it. It may be due for removal.
    """
    connection, streams = (
        batch.connection,
        {shipment: stream for (_, shipment), stream in batch.named.items()},
    )
    made = [
        (shipment, streams[shipment], batch.heads[shipment], key)
        for shipment, key in batch.new_keys.items()
        if shipment in streams
    ]
    if made:
        await make_streams(connection, made)
    # the statement asserts the version that was read: a lost update fails instead of overwriting
    if moved := {
        shipment: head
        for shipment, head in batch.heads.items()
        if head.moved and shipment not in batch.new_keys
    }:
        await move_heads(connection, moved)
    heads = (
        (shipment, batch.heads[shipment]) for shipment in streams.keys() - batch.new_keys.keys()
    )
    if named := {
        shipment: streams[shipment]
        for shipment, head in heads
        if head.version == 0 and head.key is not None
    }:
        await name_streams(connection, named)


async def write_entries(batch: AppendBatch) -> None:
    """Write the entries (events, conflicts, transitions, fan-outs), their batch row, and the
    states.
    """
    # also where no entry follows: an alias alone decides which later ids are duplicates
    if batch.decision.aliases:
        await insert_aliases(batch.connection, batch.decision.aliases)
    # events, conflicts, transitions, fan-outs: `before` numbers them within the batch, and the
    # order of the leaves is that of the log for ever
    leaf_hashes = await write_statements(batch)
    leaf_hashes += await write_conclusions(batch, before=len(leaf_hashes))
    leaf_hashes += await notify(batch, before=len(leaf_hashes))
    # the batch row exists if and only if it has entries
    if leaf_hashes:
        times = {row.recorded_at for row in batch.events} | {
            row.recorded_at for row in batch.conflicts
        }
        await write_batch(
            batch.connection,
            batch_id=batch.stamp.batch_id,
            recorded_at=min(times),
            recorded_to=max(times),
            leaf_hashes=leaf_hashes,
            writer=batch.worker,
        )


async def write_statements(batch: AppendBatch) -> list[bytes]:
    """Write events and conflicts; return their leaf hashes."""
    connection, events, conflicts = batch.connection, batch.events, batch.conflicts
    if events:
        # before the events: where another transaction took a key meanwhile, this fails first and
        # cheapest
        await insert_keys(connection, batch.decision.appends)
        await write_events(connection, events, batch_id=batch.stamp.batch_id)
        await save_shipments(
            connection, batch.projection.shipments, batch.heads, rule_book(batch.stamp.expectations)
        )
    if conflicts:
        await write_conflicts(
            connection,
            conflicts,
            batch_id=batch.stamp.batch_id,
            before=len(events),
            recorded_at=batch.stamp.recorded_at,
        )
    return [row.leaf.leaf_hash for row in events] + [row.leaf.leaf_hash for row in conflicts]


async def write_conclusions(batch: AppendBatch, *, before: int) -> list[bytes]:
    """Write transitions; return their leaf hashes."""
    transitions = [
        (change, transition_leaf(change, batch.worker, epoch=batch.stamp.epoch))
        for change in batch.changes
        if change.is_transition
    ]
    if transitions:
        rows = [
            (change.row, change.from_status, change.to_status, entry)
            for change, entry in transitions
        ]
        await write_transitions(
            batch.connection, rows, batch_id=batch.stamp.batch_id, before=before
        )
    return [entry.leaf_hash for _, entry in transitions]


async def notify(batch: AppendBatch, *, before: int) -> list[bytes]:
    changes = [
        OutboxChange.of(change, batch.traceparents)
        for change in batch.changes
        if change.row.proposal.source.notify
    ]
    fanned_out = fan_out(
        changes, batch.subscribed, shared_parcel_changes(changes, batch.parcels, batch.parcel_logs)
    )
    batch.notifications = await write_notifications(
        batch.connection, fanned_out, epoch=batch.stamp.epoch
    )
    fanouts = [fanout_of(change, subscriptions) for change, subscriptions in fanned_out]
    return await append_fanouts(batch.connection, fanouts, now=batch.stamp, before=before)


def transition_leaf(change: Change, worker: str, *, epoch: int) -> Leaf:
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

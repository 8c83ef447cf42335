"""The first of the two round trips: lock the shipments, and read all that the append needs.

It never waits for a shipment's lock; see `WhenLocked`.
"""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from events.crypto.sealing import SealingKey
from events.entry.assemble import StreamHead
from events.entry.kinds import NO_PREVIOUS
from events.entry.packed_keys import known_from
from events.entry.proposal import depend_on
from statesvc.append.append_batch import AppendBatch, WhenLocked, drop, forget_erased, propose
from statesvc.append.outbox import read_live_subscriptions
from statesvc.append.parcel_locks import (
    assign_parcels,
    lock_linked,
    printed_parcels,
    shipments_of_unlocked_parcels,
)
from statesvc.append.retry import LockedShipmentsError
from statesvc.append.settlements import referenced_streams
from statesvc.log.batch_row import begin_batch
from statesvc.log.event_store import known_keys, lock_streams, reserve_streams
from statesvc.shipments.projection_store import read_states

# Time at which the last event of a new stream was recorded.
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


async def look_up(batch: AppendBatch) -> None:
    """Propose the events, lock or reserve the streams, and read the log under these locks.

    Keeps messages under the worker's lease with unlocked shipments.
    If another transaction takes a dedupe key meanwhile that no lock guards, the write fails.
    Keys of an archived shipment are in its packed set. Raises LockedShipmentsError.
    """
    connection = batch.connection
    batch.proposals = propose(batch.messages, batch.keyring)
    batch.named = referenced_streams(batch.messages, batch.proposals)
    shipments = {shipment for _, shipment in batch.named}
    # a parcel's stream is locked with its shipments', so that two sources of it never append at
    # once
    printed = printed_parcels(batch)
    wanted = shipments | set(printed.values())
    # locks before reads: each later statement then sees all that earlier holders committed
    pending_heads = await lock_streams(connection, batch.keyring, wanted)
    pending_new = await reserve_streams(
        connection, wanted, bounded=batch.when_locked is WhenLocked.POSTPONE
    )
    # dedupe keys are read, not locked: the unique index decides at the insert, and a race is tried
    # again
    pending_known = await known_keys(
        connection, (key for proposal in batch.proposals for key in proposal.dedupe_keys())
    )
    pending_states = await read_states(connection, shipments)
    # with the rest of the round trip, whether or not a status will change: a second trip would cost
    # more
    pending_subscribed = await read_live_subscriptions(
        connection,
        ((each.event.carrier_id, each.event.numbered.number) for each in batch.proposals),
    )
    # last, under all locks: times and batch ids must grow along each stream
    pending_stamp = await begin_batch(connection)
    if batch.still_leased is not None:
        # fencing: a message whose lease was lost belongs to another worker, with its verdict
        leased = await batch.still_leased.rows()
        drop(
            batch,
            {index for index, read in enumerate(batch.messages) if read.message_id not in leased},
        )
    heads, absent = await pending_heads.rows(), await pending_new.rows()
    batch.heads = {shipment: head for shipment, head in heads.items() if shipment in shipments}
    # a stream that another transaction made between the two statements is in neither: its messages
    # wait
    for new in (shipments & absent.keys()) - heads.keys():
        # before it is known whether the shipment gets an event: its messages' bodies are sealed
        # under it
        key = SealingKey.fresh()
        batch.new_keys[new] = batch.keyring.seal_shipment_key(key, new)
        batch.heads[new] = StreamHead(
            0, NO_PREVIOUS, _NEVER, _NEVER, key, parcel_id=new if absent[new] else None
        )
    assign_parcels(batch, printed, heads, absent)
    # out of key order after the first locks, which is safe because it only tries: a lock that is
    # held fails
    if await lock_linked(batch, wanted):
        # under their locks too: what is said of a parcel later has the higher batch id
        pending_stamp = await begin_batch(connection)
    if locked := (
        {shipment for _, shipment in batch.named} - batch.heads.keys()
    ) | shipments_of_unlocked_parcels(batch):
        _postpone(batch, locked)
    batch.keys = {shipment: head.key for shipment, head in batch.heads.items()}
    # an archived shipment keeps its dedupe keys in its row, so that a late duplicate needs no
    # archive file
    packed = {
        shipment: head.packed for shipment, head in batch.heads.items() if head.packed is not None
    }
    batch.known = (
        known_from(packed, batch.proposals) if packed else {}
    ) | await pending_known.rows()
    batch.states, batch.subscribed, batch.stamp = (
        await pending_states.rows(),
        await pending_subscribed.rows(),
        await pending_stamp.rows(),
    )
    # last: only the locked heads tell who is erased, and an erasure locks them too
    forget_erased(batch)


def _postpone(batch: AppendBatch, locked: Collection[UUID]) -> None:
    """Remove messages that name one of these shipments, or depend on such.

    Raises LockedShipmentsError.
    """
    if batch.when_locked is WhenLocked.WAIT:
        raise LockedShipmentsError(
            {
                *locked,
                *(batch.parcels[shipment] for shipment in locked if shipment in batch.parcels),
            }
        )
    # a duplicate or enrichment of a message that waits must wait with it, or it would be decided
    # first
    indexes = depend_on(
        {index for index, shipment in batch.named if shipment in locked},
        batch.proposals,
        batch.named,
    )
    batch.postponed += [batch.messages[index] for index in sorted(indexes)]
    drop(batch, indexes)

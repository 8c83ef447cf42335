"""The parcels of a batch that several shipments are: locked with them, and read where they
change.
"""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from events.entry.assemble import StreamHead
from statesvc.append.append_batch import AppendBatch
from statesvc.log.event_store import lock_streams, reserve_streams
from statesvc.log.parcel_log import ParcelLog, link_streams, read_parcels


def printed_parcels(batch: AppendBatch) -> dict[UUID, UUID]:
    return {
        proposal.shipment_id: proposal.event.parcel_id
        for proposal in batch.proposals
        if proposal.event.parcel_id is not None
    }


def assign_parcels(
    batch: AppendBatch,
    printed: Mapping[UUID, UUID],
    heads: Mapping[UUID, StreamHead],
    absent: Mapping[UUID, Sequence[UUID]],
) -> None:
    """Note the parcel of each shipment, and which of them are locked: those with a stream
    (`heads`) and those without.
    """
    for each, head in batch.heads.items():
        parcel_id = head.parcel_id or printed.get(each)
        if parcel_id is not None:
            of_parcel = heads.get(parcel_id)
            batch.parcels[each] = (
                parcel_id
                if of_parcel is None or of_parcel.parcel_id is None
                else of_parcel.parcel_id
            )
    batch.parcels.update({each: each for each in set(batch.parcels.values()) & batch.heads.keys()})
    for parcel_id in batch.parcels.values():
        if parcel_id in heads:
            batch.locked_parcels[parcel_id] = None
        elif parcel_id in absent:
            batch.locked_parcels[parcel_id] = (
                None if parcel_id in batch.new_keys else absent[parcel_id]
            )
    _note_unlinked(batch, heads)


def _note_unlinked(batch: AppendBatch, heads: Mapping[UUID, StreamHead]) -> None:
    batch.unlinked_parcels |= {each for each, head in heads.items() if head.parcel_id is None}


async def lock_linked(batch: AppendBatch, tried: Collection[UUID]) -> bool:
    """Lock the parcels of linked shipments; return whether there are any."""
    if not (linked := set(batch.parcels.values()).difference(tried)):
        return False
    pending_heads = await lock_streams(batch.connection, batch.keyring, linked)
    pending_absent = await reserve_streams(batch.connection, linked, bounded=True)
    heads = await pending_heads.rows()
    batch.locked_parcels.update(dict.fromkeys(heads))
    batch.locked_parcels.update(await pending_absent.rows())
    _note_unlinked(batch, heads)
    return True


def shipments_of_unlocked_parcels(batch: AppendBatch) -> set[UUID]:
    return {
        each for each, parcel_id in batch.parcels.items() if parcel_id not in batch.locked_parcels
    }


async def link(batch: AppendBatch) -> None:
    """Link the shipments that grow to their parcels, where they were not; new ones are made so."""
    links: dict[UUID, UUID] = {}
    for each in batch.decision.shipments() & batch.parcels.keys():
        parcel_id, head = batch.parcels[each], batch.heads[each]
        if parcel_id in batch.unlinked_parcels:
            links[parcel_id] = parcel_id
        if parcel_id in batch.new_keys:
            batch.heads[parcel_id].parcel_id = parcel_id
        if head.parcel_id is None and each not in batch.new_keys:
            links[each] = parcel_id
        head.parcel_id = parcel_id
    if links:
        await link_streams(batch.connection, links)


async def read_parcel_logs(batch: AppendBatch) -> None:
    """Read the log of the changed parcels that have several sources.

    Raises ArchivedHistoryError.
    """
    await link(batch)
    changed = {change.shipment_id for change in batch.changes} & batch.parcels.keys()
    named_of: dict[UUID, set[UUID]] = {}
    for each, parcel_id in batch.parcels.items():
        named_of.setdefault(parcel_id, set()).add(each)
    if several := {
        batch.parcels[each]
        for each in changed
        if _may_have_several(batch, batch.parcels[each], named_of)
    }:
        known = await (await read_parcels(batch.connection, sorted(several))).rows()
        batch.parcel_logs = {each: known.get(each) or ParcelLog() for each in several}


def _may_have_several(
    batch: AppendBatch, parcel_id: UUID, named_of: Mapping[UUID, set[UUID]]
) -> bool:
    """Return whether it has another shipment than those of the batch."""
    others = batch.locked_parcels[parcel_id]
    return others is None or len(named_of[parcel_id].union(others)) > 1

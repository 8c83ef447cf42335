"""The shipments of a batch: locked or reserved if they grow, given a key if a message only names them.

None is waited for. What becomes of the messages whose shipment another transaction holds: `WhenLocked`.
"""

from collections.abc import Collection
from uuid import UUID

from events.crypto.sealing import SealingKey
from events.entry import NO_PREVIOUS
from events.log.assemble import StreamHead
from events.log.packed_keys import known_from
from events.log.proposal import Key, Known, decide, depend_on
from statesvc.append.append_batch import NEVER, AppendBatch, WhenLocked, drop, first_of_each, forget_erased, named_by
from statesvc.append.outbox import read_subscribed
from statesvc.append.retry import LockedShipmentsError
from statesvc.append.settlements import stream_of
from statesvc.log.event_store import NamedStream, known_keys, lock_streams, open_streams, read_streams, reserve_streams, send_tick
from statesvc.shipments.projection_store import read_states


async def lock(batch: AppendBatch) -> None:
    """Locks the streams that grow, reserves the new ones, and reads states, subscriptions and clock under the locks.

    Streams that do not grow are read for their keys. Later steps query nothing again: if another transaction takes a dedupe key
    meanwhile, the write fails; keys that a locked stream guards are read again under its lock. Those of an archived shipment are in its
    packed set.
    """
    connection, growing = batch.connection, batch.decision.shipments()
    others = {each for _, each in named_by(batch)} - growing
    asked_streams = await read_streams(connection, batch.keyring, others) if others else None
    taken: dict[Key, Known] = {}
    if batch.wrote:
        asked_heads = await lock_streams(connection, batch.keyring, growing)
        asked_new = await reserve_streams(connection, growing, bounded=is_bounded(batch))
        asked_taken = await known_keys(connection, guarded) if (guarded := batch.decision.guarded_keys()) else None
        asked_states = await read_states(connection, growing)
        asked_subscribed = await read_subscribed(connection, batch.decision.appends)
        asked_tick = await send_tick(connection)
        batch.heads = await asked_heads.rows()
        for new in await asked_new.rows() - batch.heads.keys():
            key = SealingKey.fresh()
            batch.new_keys[new] = batch.keyring.seal_shipment_key(key, new)
            batch.heads[new] = StreamHead(0, NO_PREVIOUS, NEVER, NEVER, key)
        packed = {each: head.packed for each, head in batch.heads.items() if head.packed is not None}
        taken = known_from(packed, batch.proposals) if packed else {}
        if asked_taken is not None:
            taken |= await asked_taken.rows()
        batch.known.update(taken)
        batch.states, batch.subscribed = await asked_states.rows(), await asked_subscribed.rows()
        batch.tick = await asked_tick.rows()
        batch.keys = {each: head.key for each, head in batch.heads.items()}
    if asked_streams is not None:
        batch.streams = await asked_streams.rows()
        batch.keys.update({each: stream.key for each, stream in batch.streams.items()})
    if forget_erased(batch) or taken:
        batch.decision = decide(batch.proposals, batch.known)


def drop_locked(batch: AppendBatch) -> None:
    """Takes out the messages that would let a shipment grow which another transaction has locked. Raises LockedShipmentsError."""
    if locked := batch.decision.shipments() - batch.heads.keys():
        postpone(batch, locked)
    # a stream that was reserved and does not grow after all is not made
    for each in batch.new_keys.keys() - batch.decision.shipments():
        del batch.new_keys[each], batch.heads[each], batch.keys[each]


def postpone(batch: AppendBatch, locked: Collection[UUID]) -> None:
    """Takes out the messages that name one of these shipments, and those that depend on them. Raises LockedShipmentsError."""
    if batch.when_locked is WhenLocked.WAIT:
        raise LockedShipmentsError(locked)
    named = list(named_by(batch))
    places = depend_on({place for place, each in named if each in locked}, batch.proposals, named)
    batch.postponed += [batch.messages[place] for place in sorted(places)]
    drop(batch, places)


def is_bounded(batch: AppendBatch) -> bool:
    """Whether it makes no more new streams than it may reserve; a message that has more of them is alone in the end, and makes them all."""
    return batch.when_locked is WhenLocked.POSTPONE


async def open_named(batch: AppendBatch) -> None:
    """Makes streams that hold only a key, for shipments that messages name but add nothing to: their bodies are under it too.

    An existing one may be due for removal, so it is refreshed. One that another transaction has locked or is making holds up only the
    messages that name it. Raises LockedShipmentsError.
    """
    while missing := streams_to_open(batch):
        opened = await (await open_streams(batch.connection, batch.keyring, missing, bounded=is_bounded(batch))).rows()
        batch.keys.update(opened)
        batch.opened |= opened.keys()
        if locked := missing.keys() - opened.keys():
            postpone(batch, locked)
            # one that was reserved for a message that is postponed now may be named by another
            drop_locked(batch)


def streams_to_open(batch: AppendBatch) -> dict[UUID, NamedStream]:
    """The streams that the messages name, that do not grow, and that are missing or may be due for removal."""
    wanted = {shipment: stream for (_, shipment), stream in batch.only_named.items()}
    wanted |= {each.shipment_id: stream_of(each) for each in first_of_each(batch.proposals) if each.shipment_id not in batch.keys}
    if not wanted:
        return {}
    lasting = {shipment for shipment, stream in batch.streams.items() if stream.version > 0 or stream.key is None}
    lasting |= batch.heads.keys() | batch.opened
    return {shipment: stream for shipment, stream in wanted.items() if shipment not in lasting}

"""Reading and writing the log in sets: the number of statements does not depend on the events.

Lock order: ARCHITECTURE.md. Writes check on the server that no other transaction was first
(`require_all`), so no second read is needed before the commit.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealingKey
from events.entry.assemble import ConflictRow, EventRow, StreamHead
from events.entry.kinds import Leaf, offset_seconds
from events.entry.packed_keys import PackedKeys, unpack
from events.entry.proposal import Conflict, DedupeKey, ExistingEvent, Proposal, keys_of
from statesvc.database.queries import (
    Columns,
    Pending,
    Sender,
    bools,
    byteas,
    columns,
    encoded,
    ints,
    queries,
    send,
    texts,
    timestamps,
    uuids,
    uuids_or_null,
)
from statesvc.log.json_compression import compress_json, decompress_json

_SQL = queries("statesvc.log", "event_store")
_STREAMS: Final[Columns] = {
    "shipment_ids": uuids,
    "carrier_ids": texts,
    "numbers": texts,
    "discriminators": texts,
    "versions": ints,
    "head_hashes": byteas,
    "recorded_ats": timestamps,
    "first_recorded_ats": timestamps,
    "sealed_keys": byteas,
    "named_ats": timestamps,
    "parcel_ids": uuids_or_null,
}
_KEYS: Final[Columns] = {
    "carrier_ids": texts,
    "event_ids": texts,
    "shipment_ids": uuids,
    "facts_digests": byteas,
    "attribute_digests": byteas,
    "aliases_of": texts,
}
_EVENTS: Final[Columns] = {
    "shipment_ids": uuids,
    "versions": ints,
    "recorded_ats": timestamps,
    "received_ats": timestamps,
    "occurred_ats": timestamps,
    "message_ids": uuids,
    "carrier_ids": texts,
    "event_ids": texts,
    "kinds": texts,
    "statuses": texts,
    "carrier_codes": texts,
    "raw_types": texts,
    "raw_codes": texts,
    "raw_reasons": texts,
    "raw_texts": texts,
    "corrects": texts,
    "printed_numbers": texts,
    "occurred_offsets": ints,
    "by_categories": bools,
    "normalizers": texts,
    "canonicals": byteas,
    "sealed_parts": byteas,
}
_HEADS: Final[Columns] = {
    "shipment_ids": uuids,
    "seen": ints,
    "versions": ints,
    "head_hashes": byteas,
    "recorded_ats": timestamps,
    "first_recorded_ats": timestamps,
}
_CONFLICTS: Final[Columns] = {
    "shipment_ids": uuids,
    "claimed_shipment_ids": uuids,
    "message_ids": uuids,
    "carrier_ids": texts,
    "event_ids": texts,
    "facts_digests": byteas,
    "canonicals": byteas,
    "sealed_parts": byteas,
}
_COUNTED: Final = (
    "carrier_ids",
    "event_ids",
    "facts_digests",
    "shipment_ids",
    "claimed_shipment_ids",
    "times",
)
_TRANSITIONS: Final[Columns] = {
    "shipment_ids": uuids,
    "sequences": ints,
    "recorded_ats": timestamps,
    "from_statuses": texts,
    "to_statuses": texts,
    "canonicals": byteas,
}


# In one transaction: 15,000 advisory locks exhausted the server's memory.
NEW_STREAMS_MAX: Final = 1_000


class StreamState(NamedTuple):
    """A stream as it was read. `key` None: erased."""

    version: int
    key: SealingKey | None


class ReferencedStream(NamedTuple):
    """A number that a message names, and when that message was received."""

    carrier_id: str
    number: str
    discriminator: str
    named_at: datetime


async def known_keys(
    connection: Sender, keys: Iterable[DedupeKey]
) -> Pending[dict[DedupeKey, ExistingEvent]]:
    return await send(
        connection,
        _SQL["known_keys"],
        # each key once, in the order of the events
        encoded(dict.fromkeys(keys), {"carrier_ids": texts, "event_ids": texts}),
        lambda rows: {
            (carrier_id, event_id): ExistingEvent(*known) for carrier_id, event_id, *known in rows
        },
    )


async def read_packed_keys(
    connection: Sender, shipment_ids: Iterable[UUID]
) -> dict[UUID, PackedKeys]:
    """Return the packed dedupe keys of these shipments, where they have left their table."""
    rows = await connection.execute(
        _SQL["read_packed_keys"], {"shipment_ids": uuids(list(set(shipment_ids)))}, binary=True
    )
    return {
        shipment_id: unpack(keys, values) for shipment_id, keys, values in await rows.fetchall()
    }


async def read_streams(
    connection: Sender, keyring: Keyring, shipment_ids: Iterable[UUID]
) -> Pending[dict[UUID, StreamState]]:
    """Read the existing streams among those shipments, unlocked."""
    return await send(
        connection,
        _SQL["read_streams"],
        {"shipment_ids": uuids(list(set(shipment_ids)))},
        lambda rows: {
            shipment_id: StreamState(
                version, None if sealed is None else keyring.open_shipment_key(sealed, shipment_id)
            )
            for shipment_id, version, sealed in rows
        },
    )


async def lock_streams(
    connection: Sender, keyring: Keyring, shipment_ids: Iterable[UUID]
) -> Pending[dict[UUID, StreamHead]]:
    """Read and lock the streams that exist, without those that another transaction has locked."""

    def read(answer: list[Any]) -> dict[UUID, StreamHead]:
        heads = {}
        for (
            shipment_id,
            version,
            head_hash,
            recorded_at,
            first_recorded_at,
            sealed,
            packed_keys,
            packed_values,
            parcel_id,
        ) in answer:
            key = None if sealed is None else keyring.open_shipment_key(sealed, shipment_id)
            packed = None if packed_keys is None else unpack(packed_keys, packed_values)
            heads[shipment_id] = StreamHead(
                version,
                head_hash,
                recorded_at,
                first_recorded_at,
                key,
                # `move_heads` asserts it: whoever moved the head since fails instead of being
                # overwritten
                seen=version,
                packed=packed,
                parcel_id=parcel_id,
            )
        return heads

    return await send(
        connection, _SQL["lock_streams"], {"shipment_ids": uuids(list(shipment_ids))}, read
    )


async def reserve_streams(
    connection: Sender, shipment_ids: Iterable[UUID], *, bounded: bool
) -> Pending[dict[UUID, list[UUID]]]:
    """Reserve shipments without a stream, except those that another transaction is making.

    Each with the shipments of other sources whose parcel it represents. At most a thousand get
    a lock of their own; with `bounded` no more are reserved, otherwise another transaction may
    make a later one first.
    """
    parameters = {
        "shipment_ids": uuids(list(shipment_ids)),
        "most": NEW_STREAMS_MAX,
        "bounded": bounded,
    }
    return await send(
        connection,
        _SQL["reserve_streams"],
        parameters,
        # NULL: another transaction made its stream between the snapshot and the advisory lock
        lambda rows: {shipment_id: sources for shipment_id, sources in rows if sources is not None},
    )


async def wait_for_streams(
    connection: AsyncConnection[Any], shipment_ids: Collection[UUID], *, seconds: float
) -> None:
    """Wait until no other transaction holds or makes these shipments. Raises LockNotAvailable.

    The calling transaction must hold nothing else.
    """
    # its own, ended at once: the locks are taken only to have stood in line for them
    async with connection.transaction():
        await connection.execute(
            _SQL["limit_lock_waits"], {"milliseconds": max(1, round(seconds * 1000))}
        )
        await connection.execute(
            _SQL["wait_for_streams"], {"shipment_ids": uuids(list(shipment_ids))}
        )
        await connection.execute(
            _SQL["wait_for_new_streams"],
            {"shipment_ids": uuids(list(shipment_ids)), "most": NEW_STREAMS_MAX},
        )


async def make_streams(
    connection: Sender, streams: Sequence[tuple[UUID, ReferencedStream, StreamHead, bytes]]
) -> None:
    """Create reserved streams with their heads and sealed keys.

    A stream that does not grow is due for removal in the end.
    """
    rows = [
        (
            shipment_id,
            stream.carrier_id,
            stream.number,
            stream.discriminator,
            head.version,
            head.head_hash,
            head.recorded_at,
            head.first_recorded_at,
            sealed_key,
            # a stream with events is never due for removal
            None if head.moved else stream.named_at,
            head.parcel_id,
        )
        for shipment_id, stream, head, sealed_key in streams
    ]
    # `wanted`: a row that conflicts is skipped by the insert, and then missed by the count
    await connection.execute(_SQL["make_streams"], {"wanted": len(rows), **encoded(rows, _STREAMS)})


async def name_streams(connection: Sender, named: Mapping[UUID, ReferencedStream]) -> None:
    """Put off the removal of locked empty streams, since another message names them."""
    rows = [(shipment_id, stream.named_at) for shipment_id, stream in named.items()]
    await connection.execute(
        _SQL["name_streams"], encoded(rows, {"shipment_ids": uuids, "named_ats": timestamps})
    )


async def insert_keys(connection: Sender, appends: Iterable[Proposal]) -> None:
    """Take the dedupe keys of `appends`, which were free when they were read; if one no longer is,
    the transaction fails.
    """
    rows = _key_columns(keys_of(appends))
    await connection.execute(_SQL["insert_keys"], {"wanted": len(rows), **encoded(rows, _KEYS)})


async def insert_aliases(
    connection: Sender, aliases: Sequence[tuple[DedupeKey, ExistingEvent]]
) -> None:
    """Take those aliases that are free."""
    await connection.execute(_SQL["insert_aliases"], encoded(_key_columns(aliases), _KEYS))


def _key_columns(keys: Sequence[tuple[DedupeKey, ExistingEvent]]) -> list[tuple[Any, ...]]:
    return [
        (*key, known.shipment_id, known.facts_digest, known.attribute_digests, known.alias_of)
        for key, known in keys
    ]


async def count_conflicts(
    connection: Sender, conflicts: Sequence[Conflict], *, recorded_at: datetime
) -> list[Conflict]:
    """Count each conflict, and return the new ones; their entries are recorded at `recorded_at`."""
    first: dict[tuple[str, str, bytes], Conflict] = {}
    times: Counter[tuple[str, str, bytes]] = Counter()
    for conflict in conflicts:
        statement = (*conflict.proposal.key, conflict.proposal.event.facts_digest)
        first.setdefault(statement, conflict)
        times[statement] += 1
    rows = [
        (*statement, first[statement].holder, first[statement].proposal.shipment_id, count)
        for statement, count in times.items()
    ]
    pending = await send(
        connection,
        _SQL["count_conflicts"],
        {"recorded_at": recorded_at, **columns(rows, _COUNTED)},
        lambda rows: [
            # a counter that equals this batch's count began with it: only then is there no entry
            # yet
            first[c, e, digest]
            for c, e, digest, seen in rows
            if seen == times[c, e, digest]
        ],
    )
    return await pending.rows()


async def extend_streams(
    connection: Sender, shipment_ids: Iterable[UUID], recorded_at: datetime
) -> None:
    """Note, in the same transaction, that something other than events was recorded of these
    shipments: readers go by it.
    """
    # sorted: rows of a table are locked by key
    if shipments := sorted(set(shipment_ids)):
        await connection.execute(
            _SQL["extend_streams"], {"shipment_ids": uuids(shipments), "recorded_at": recorded_at}
        )


async def write_events(connection: Sender, rows: Sequence[EventRow], *, batch_id: int) -> None:
    await connection.execute(
        _SQL["insert_events"], {"batch_id": batch_id, **encoded(map(_event_columns, rows), _EVENTS)}
    )


async def move_heads(connection: Sender, heads: Mapping[UUID, StreamHead]) -> None:
    rows = [
        (s, h.seen, h.version, h.head_hash, h.recorded_at, h.first_recorded_at)
        for s, h in heads.items()
    ]
    await connection.execute(_SQL["move_heads"], {"wanted": len(rows), **encoded(rows, _HEADS)})


def _event_columns(row: EventRow) -> tuple[Any, ...]:
    proposal = row.proposal
    event, source = proposal.event, proposal.source
    return (
        proposal.shipment_id,
        row.version,
        row.recorded_at,
        source.received_at,
        event.occurred_at,
        source.message_id,
        event.carrier_id,
        event.event_id,
        event.kind,
        event.status,
        event.carrier_code,
        event.raw.type,
        event.raw.code,
        event.raw.reason,
        event.raw_text,
        event.corrects,
        # the number as compared is the stream's; only another spelling of it is stored again
        None if event.tracking_number == proposal.event.numbered.number else event.tracking_number,
        offset_seconds(event.occurred_at),
        event.by_category,
        f"{source.normalizer}@{source.normalizer_version}",
        # hashed before it was compressed: a later dictionary may compress otherwise, and the leaf
        # stays
        compress_json(row.leaf.canonical),
        row.sealed_part,
    )


async def write_conflicts(
    connection: Sender,
    rows: Sequence[ConflictRow],
    *,
    batch_id: int,
    before: int,
    recorded_at: datetime,
) -> None:
    values = [
        (
            row.conflict.holder,
            p.shipment_id,
            p.source.message_id,
            *p.key,
            p.event.facts_digest,
            compress_json(row.leaf.canonical),
            row.sealed_part,
        )
        for row in rows
        for p in (row.conflict.proposal,)
    ]
    parameters = {
        "batch_id": batch_id,
        "before": before,
        "recorded_at": recorded_at,
        **encoded(values, _CONFLICTS),
    }
    await connection.execute(_SQL["insert_conflicts"], parameters)


async def write_transitions(
    connection: Sender,
    transitions: Sequence[tuple[EventRow, str, str, Leaf]],
    *,
    batch_id: int,
    before: int,
) -> None:
    """Append transitions (event that names it, from, to, leaf) after `before` other entries of the
    batch.
    """
    rows = [
        (
            row.proposal.shipment_id,
            row.version,
            row.recorded_at,
            from_status,
            to_status,
            compress_json(entry.canonical),
        )
        for row, from_status, to_status, entry in transitions
    ]
    await connection.execute(
        _SQL["insert_transitions"],
        {"batch_id": batch_id, "before": before, **encoded(rows, _TRANSITIONS)},
    )


async def read_events(
    connection: Sender, since: Mapping[UUID, datetime]
) -> Pending[list[tuple[UUID, bytes]]]:
    """Read canonical bytes of the events of the shipments in `since` (shipment id -> its first
    recorded_at), by shipment and version.
    """
    return await send(
        connection,
        _SQL["read_events"],
        # the oldest of all: partitions before it are left out by the planner
        {"shipment_ids": uuids(list(since)), "since": min(since.values())},
        lambda rows: [(shipment_id, decompress_json(canonical)) for shipment_id, canonical in rows],
    )

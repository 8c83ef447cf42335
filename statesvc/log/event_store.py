"""Reading and writing the log. Set-based: the number of statements does not depend on the number of events.

Lock order inside a transaction: messages (the caller's), streams by shipment id, dedupe keys by carrier and event id. The
keys of enrichments and aliases are taken last: they embed the shipment, whose stream is locked.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealingKey
from events.entry import Leaf
from events.log.assemble import ConflictRow, EventRow, StreamHead
from events.log.proposal import Conflict, Decision, Key, Known, Proposal, keys_of
from statesvc.database.arrays import Columns, bools, byteas, encoded, ints, texts, timestamps, uuids
from statesvc.database.pending import Pending, columns, send
from statesvc.database.queries import queries

_SQL = queries("statesvc.log", "event_store")
_STREAMS: Final[Columns] = {
    "shipment_ids": uuids,
    "carrier_ids": texts,
    "numbers": texts,
    "discriminators": texts,
    "sealed_keys": byteas,
}
_NAMED: Final[Columns] = {
    "shipment_ids": uuids,
    "carrier_ids": texts,
    "numbers": texts,
    "discriminators": texts,
    "named_ats": timestamps,
    "sealed_keys": byteas,
}
_KEYS: Final[Columns] = {
    "carrier_ids": texts,
    "event_ids": texts,
    "shipment_ids": uuids,
    "facts_digests": byteas,
    "carried": byteas,
    "stand_for": texts,
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
    "by_categories": bools,
    "normalizers": texts,
    "leaf_hashes": byteas,
    "canonicals": byteas,
    "sealed_parts": byteas,
}
_HEADS: Final[Columns] = {
    "shipment_ids": uuids,
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
    "leaf_hashes": byteas,
    "canonicals": byteas,
    "sealed_parts": byteas,
}
_TRANSITIONS: Final[Columns] = {
    "shipment_ids": uuids,
    "sequences": ints,
    "recorded_ats": timestamps,
    "message_ids": uuids,
    "from_statuses": texts,
    "to_statuses": texts,
    "event_ids": texts,
    "leaf_hashes": byteas,
    "canonicals": byteas,
}


class StreamState(NamedTuple):
    """A stream as it was read. `key` None: erased."""

    version: int
    key: SealingKey | None


class NamedStream(NamedTuple):
    """A number that a message names, and when that message came."""

    carrier_id: str
    number: str
    discriminator: str
    named_at: datetime


async def known_keys(connection: AsyncConnection[Any], keys: Iterable[Key]) -> Pending[dict[Key, Known]]:
    """What the log holds under `keys`."""
    return await send(
        connection,
        _SQL["known_keys"],
        encoded(dict.fromkeys(keys), {"carrier_ids": texts, "event_ids": texts}),
        lambda rows: {(carrier_id, event_id): Known(*known) for carrier_id, event_id, *known in rows},
    )


async def read_streams(
    connection: AsyncConnection[Any], keyring: Keyring, shipment_ids: Iterable[UUID]
) -> Pending[dict[UUID, StreamState]]:
    """The streams of those shipments that exist, unlocked."""
    return await send(
        connection,
        _SQL["read_streams"],
        {"shipment_ids": uuids(list(set(shipment_ids)))},
        lambda rows: {
            shipment_id: StreamState(version, None if sealed is None else keyring.open_shipment_key(sealed, shipment_id))
            for shipment_id, version, sealed in rows
        },
    )


async def lock_streams(
    connection: AsyncConnection[Any], keyring: Keyring, proposals: Iterable[Proposal], known: Mapping[UUID, StreamState]
) -> Pending[dict[UUID, StreamHead]]:
    """Locks the streams that `proposals` grow, makes the new ones with a fresh key. `known`: those that existed before."""
    first = {proposal.shipment_id: proposal for proposal in proposals}
    fresh: dict[UUID, tuple[bytes, SealingKey]] = {}
    rows: list[tuple[Any, ...]] = []
    for shipment_id, proposal in first.items():
        sealed = b""
        if shipment_id not in known or known[shipment_id].version == 0:
            # one that only holds a key may be forgotten meanwhile
            key = SealingKey.fresh()
            sealed = keyring.seal_shipment_key(key, shipment_id)
            fresh[shipment_id] = (sealed, key)
        rows.append((shipment_id, proposal.event.carrier_id, proposal.number, proposal.event.discriminator, sealed))

    def read(answer: list[Any]) -> dict[UUID, StreamHead]:
        heads = {}
        for shipment_id, version, head_hash, recorded_at, first_recorded_at, sealed in answer:
            stream = known.get(shipment_id)
            sent, key = fresh.get(shipment_id, (None, None if stream is None else stream.key))
            if sealed is None:
                key = None
            elif sent is not None and sent != sealed:
                # another worker made the stream after we read
                key = keyring.open_shipment_key(sealed, shipment_id)
            heads[shipment_id] = StreamHead(version, head_hash, recorded_at, first_recorded_at, key)
        return heads

    return await send(
        connection,
        _SQL["lock_streams"],
        encoded(rows, _STREAMS),
        read,
    )


async def open_streams(
    connection: AsyncConnection[Any], keyring: Keyring, streams: Mapping[UUID, NamedStream]
) -> Pending[dict[UUID, SealingKey | None]]:
    """Makes streams with nothing but a key where there are none; answers the keys. None: erased."""
    fresh = {shipment_id: SealingKey.fresh() for shipment_id in streams}
    rows = [(shipment_id, *stream, keyring.seal_shipment_key(fresh[shipment_id], shipment_id)) for shipment_id, stream in streams.items()]
    return await send(
        connection,
        _SQL["open_streams"],
        encoded(rows, _NAMED),
        lambda answer: {
            shipment_id: None if sealed is None else keyring.open_shipment_key(sealed, shipment_id) for shipment_id, sealed in answer
        },
    )


def untouched(free: Sized, appends: Iterable[Proposal], heads: Mapping[UUID, StreamHead], known: Mapping[UUID, StreamState]) -> bool:
    """Whether nobody wrote between the first read and the locks, so that the keys read in between are still complete.

    Scans' keys were `free`; the key of an enrichment or an alias belongs to one stream, and taking it moves that stream's version on.
    This needs the streams to be read (`known`) before the keys.
    """
    return len(free) == sum(not proposal.is_named_by_shipment for proposal in appends) and all(
        head.version == (stream.version if (stream := known.get(shipment_id)) is not None else 0) for shipment_id, head in heads.items()
    )


async def insert_keys(connection: AsyncConnection[Any], appends: Iterable[Proposal]) -> Pending[set[Key]]:
    """Takes the dedupe keys of `appends`; answers which of them were free. Verdicts on the others need a second statement."""
    rows = _key_columns(keys_of(proposal for proposal in appends if not proposal.is_named_by_shipment))
    return await send(connection, _SQL["insert_keys"], encoded(rows, _KEYS), lambda answer: {(c, e) for c, e in answer})


async def write_keys(connection: AsyncConnection[Any], decision: Decision) -> None:
    """Takes the dedupe keys that the locked streams guard: of enrichments, of statements with aliases, and the aliases."""
    guarded = keys_of(proposal for proposal in decision.appends if proposal.is_named_by_shipment)
    if rows := _key_columns([*guarded, *decision.aliases]):
        await connection.execute(_SQL["insert_keys"], encoded(rows, _KEYS))


def _key_columns(keys: Sequence[tuple[Key, Known]]) -> list[tuple[Any, ...]]:
    return [(*key, known.shipment_id, known.facts_digest, known.carried, known.stands_for) for key, known in keys]


async def count_conflicts(connection: AsyncConnection[Any], conflicts: Sequence[Conflict]) -> list[Conflict]:
    """Counts each contradiction, and returns those that were never seen before."""
    first: dict[tuple[str, str, bytes], Conflict] = {}
    times: Counter[tuple[str, str, bytes]] = Counter()
    for conflict in conflicts:
        statement = (*conflict.proposal.key, conflict.proposal.facts_digest)
        first.setdefault(statement, conflict)
        times[statement] += 1
    pending = await send(
        connection,
        _SQL["count_conflicts"],
        columns([(*statement, count) for statement, count in times.items()], ("carrier_ids", "event_ids", "facts_digests", "times")),
        lambda rows: [first[c, e, digest] for c, e, digest, seen in rows if seen == times[c, e, digest]],
    )
    return await pending.rows()


async def write_events(
    connection: AsyncConnection[Any],
    rows: Sequence[EventRow],
    *,
    heads: Mapping[UUID, StreamHead],
    batch_id: int,
) -> None:
    """Appends assembled events and moves the heads on."""
    await connection.execute(
        _SQL["insert_events"],
        {
            "batch_id": batch_id,
            **encoded(map(_event_columns, rows), _EVENTS),
        },
    )
    await connection.execute(
        _SQL["move_heads"],
        encoded(
            [(s, h.version, h.head_hash, h.recorded_at, h.first_recorded_at) for s, h in heads.items() if h.moved],
            _HEADS,
        ),
    )


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
        event.kind.value,
        event.status.value if event.status else None,
        event.carrier_code,
        event.by_category,
        f"{source.normalizer}@{source.normalizer_version}",
        row.leaf.leaf_hash,
        row.leaf.canonical,
        row.sealed_part,
    )


async def write_conflicts(
    connection: AsyncConnection[Any], rows: Sequence[ConflictRow], *, batch_id: int, before: int, recorded_at: datetime
) -> None:
    """Appends conflicts after `before` other entries of the batch."""
    await connection.execute(
        _SQL["insert_conflicts"],
        {
            "batch_id": batch_id,
            "before": before,
            "recorded_at": recorded_at,
            **encoded(
                [
                    (
                        row.conflict.holder,
                        row.conflict.proposal.shipment_id,
                        row.conflict.proposal.source.message_id,
                        *row.conflict.proposal.key,
                        row.conflict.proposal.facts_digest,
                        row.leaf.leaf_hash,
                        row.leaf.canonical,
                        row.sealed_part,
                    )
                    for row in rows
                ],
                _CONFLICTS,
            ),
        },
    )


async def write_transitions(
    connection: AsyncConnection[Any],
    transitions: Sequence[tuple[EventRow, str, str, Leaf]],
    *,
    batch_id: int,
    before: int,
    worker: str,
) -> None:
    """Appends transitions (event that names it, from, to, leaf) after `before` other entries of the batch."""
    rows = [
        (
            row.proposal.shipment_id,
            row.version,
            row.recorded_at,
            row.proposal.source.message_id,
            from_status,
            to_status,
            row.proposal.event.event_id,
            entry.leaf_hash,
            entry.canonical,
        )
        for row, from_status, to_status, entry in transitions
    ]
    await connection.execute(
        _SQL["insert_transitions"], {"batch_id": batch_id, "before": before, "worker": worker, **encoded(rows, _TRANSITIONS)}
    )


async def send_tick(connection: AsyncConnection[Any]) -> Pending[tuple[datetime, int]]:
    """The wall clock under the locks that were taken before, and the id of this transaction's batch."""
    return await send(connection, _SQL["tick"], {}, lambda rows: (rows[0][0].astimezone(UTC), rows[0][1]))


async def read_events(connection: AsyncConnection[Any], since: Mapping[UUID, datetime]) -> Pending[list[tuple[UUID, bytes]]]:
    """Canonical bytes of the events of the shipments in `since` (shipment id -> its first recorded_at), by shipment and version."""
    return await send(
        connection,
        _SQL["read_events"],
        {"shipment_ids": uuids(list(since)), "since": min(since.values())},
        lambda rows: [(shipment_id, bytes(canonical)) for shipment_id, canonical in rows],
    )

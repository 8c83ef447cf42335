"""Fan-out entries: the subscriptions of each change, written with the outbox in one transaction.

Each notification ends with an entry of its own (`attempt`), with that of a later notification that
covers it, or with its subscription's deletion.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from events.entry.kinds import fanout_document, leaf, rfc3339
from events.event import value
from statesvc.database.queries import (
    Array,
    Columns,
    Sender,
    bools,
    byteas,
    encoded,
    ints,
    queries,
    texts,
    timestamps,
    uuids,
)
from statesvc.files.archive_errors import ArchivedHistoryError
from statesvc.log import entry_documents
from statesvc.log.batch_row import BatchStamp
from statesvc.log.event_store import extend_streams
from statesvc.log.json_compression import compress_json, decompress_json

_SQL = queries("statesvc.log", "fanouts")
_FANOUTS: Final[Columns] = {
    "shipment_ids": uuids,
    "sequences": ints,
    "recorded_ats": timestamps,
    "subscriptions": texts,
    "replayed": bools,
    "canonicals": byteas,
}


@value(frozen=True, slots=True, kw_only=True)
class Fanout:
    """A change and its subscriptions, at least one.

    `event`: the leaf hash of the event that names it.
    """

    shipment_id: UUID
    sequence: int
    event: bytes
    from_status: str
    to_status: str
    subscriptions: Sequence[UUID]
    recorded_at: datetime
    replayed: bool = False
    kind: str | None = None
    """The type of the notification where no change but an observation is sent; `event` is its leaf
    hash then, `sequence` negative.
    """


def repeated_fanouts(rows: Iterable[Sequence[Any]], *, recorded_at: datetime) -> list[Fanout]:
    """Build fan-outs that repeat earlier changes. Raises ArchivedHistoryError.

    Each row holds the fields of a fan-out in order, without the time. Behind the leaf hash of
    the event stands its first fan-out as stored, for events that are archived.
    """
    again, archived = [], set()
    for (
        shipment_id,
        sequence,
        leaf_hash,
        stored,
        from_status,
        to_status,
        subscriptions,
        replayed,
        kind,
    ) in rows:
        if leaf_hash is None and stored is None:
            archived.add(shipment_id)
            continue
        event = (
            leaf_hash
            if leaf_hash is not None
            else bytes.fromhex(entry_documents.fanout(decompress_json(stored)).event)
        )
        again.append(
            Fanout(
                shipment_id=shipment_id,
                sequence=sequence,
                event=event,
                from_status=from_status,
                to_status=to_status,
                subscriptions=subscriptions,
                recorded_at=recorded_at,
                replayed=replayed,
                kind=kind,
            )
        )
    if archived:
        raise ArchivedHistoryError(archived)
    return again


async def append_fanouts(
    connection: Sender, fanouts: Sequence[Fanout], *, now: BatchStamp, before: int = 0
) -> list[bytes]:
    """Append fan-outs to a batch that has `before` other entries.

    Return their leaf hashes: the caller writes the batch row.
    """
    if not fanouts:
        return []
    documents = [
        fanout_document(
            shipment_id=each.shipment_id,
            sequence=each.sequence,
            event=each.event,
            from_status=each.from_status,
            to_status=each.to_status,
            subscriptions=each.subscriptions,
            recorded_at=each.recorded_at,
            replayed=each.replayed,
            kind=each.kind,
        )
        for each in fanouts
    ]
    leaves = [leaf(document, epoch=now.epoch) for document in documents]
    rows = [
        (
            each.shipment_id,
            each.sequence,
            each.recorded_at,
            " ".join(document["subscriptions"]),
            each.replayed,
            compress_json(entry.canonical),
        )
        for each, document, entry in zip(fanouts, documents, leaves, strict=True)
    ]
    parameters: dict[str, Array | int] = {
        "batch_id": now.batch_id,
        "before": before,
        **encoded(rows, _FANOUTS),
    }
    await connection.execute(_SQL["insert_fanouts"], parameters)
    # the others are of events and observations of the same transaction
    await extend_streams(
        connection, (each.shipment_id for each in fanouts if each.replayed), now.recorded_at
    )
    return [entry.leaf_hash for entry in leaves]


def open_details(waiting: int, since: datetime | None, until: datetime | None) -> dict[str, Any]:
    """Return, for the entry of an action that stops notifications, how many, and when the first
    and the last were queued.
    """
    if since is None or until is None:
        return {"open": waiting}
    return {"open": waiting, "open_since": rfc3339(since), "open_until": rfc3339(until)}

"""One stretch of batches: each entry's bytes against its hash, its columns, its batch and its sealed part; each batch against the queue.

A batch's entries of one kind are held against it all at once, which is quick and says only whether all of it is right. Where it is not,
`examination` looks at them one by one and names the place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final

from psycopg import Connection, Cursor
from psycopg.types.numeric import Int8BinaryLoader

from events.crypto.sealing import MasterKeys
from events.merkle.hashing import HASH_BYTES
from statesvc.database.queries import queries
from statesvc.log.archive.entry_row import Entry
from statesvc.log.entry_columns import KINDS, Kind
from statesvc.log.verify.archived_months import Archived, Found, Unread
from statesvc.log.verify.batches import Batch, Stretch, read_batches, untaken
from statesvc.log.verify.chain import Sums, add_events
from statesvc.log.verify.entry_checks import FIRST_VALUE, examine, fits
from statesvc.log.verify.fault import FAULTS_MAX, Fault
from statesvc.log.verify.parts import Parts

SQL = queries("statesvc.log.verify", "entries")
_BATCH: Final = itemgetter(0)


@dataclass(slots=True)
class Checked:
    """What a stretch holds, and what is wrong in it."""

    entries: int = 0
    events: int = 0
    batches: int = 0
    sums: Sums = field(default_factory=Sums)
    faults: list[Fault] = field(default_factory=list)


def check_stretch(connection: Connection[Any], stretch: Stretch, master: MasterKeys | None, archived: Archived) -> Checked:
    """Reads and checks a stretch as of one moment, and what the archive has of it."""
    checked = Checked()
    parts = Parts(master)
    found: list[Fault] = []
    with connection.transaction(), _cursor(connection) as cursor:
        cursor.execute(SQL["snapshot"])
        batches = read_batches(cursor, stretch, found)
        for kind in KINDS:
            rows = cursor.execute(SQL[kind.name], {"low": stretch.low, "high": stretch.high, "opens": parts.opens}).fetchall()
            checked.entries += len(rows)
            checked.events += len(rows) if kind.name == "event" else 0
            if parts.opens and kind.sealed:
                parts.read(connection, {value for row in rows for value in (row[5], row[6]) if isinstance(value, str)})
            found += islice(_check(kind, rows, batches, parts, checked.sums), FAULTS_MAX)
        unread: list[Unread] = []
        for file in archived.of_batches(stretch.low, stretch.high):
            found += file.faults
            unread += file.unread
            found += islice(_check_archived(connection, file, batches, parts, checked), FAULTS_MAX)
    checked.batches = len(batches)
    # what could not be read was said already
    found += islice(untaken({id_: batch for id_, batch in batches.items() if not any(id_ in each for each in unread)}), FAULTS_MAX)
    checked.faults = found[:FAULTS_MAX]
    return checked


def _cursor(connection: Connection[Any]) -> Cursor[Any]:
    """Times come as the integers that they are in the server: three of them an event are too many objects to make and to compare."""
    cursor = connection.cursor(binary=True)
    cursor.adapters.register_loader("timestamptz", Int8BinaryLoader)
    return cursor


def _check(kind: Kind, rows: list[Any], batches: dict[int, Batch], parts: Parts, sums: Sums) -> Iterator[Fault]:
    for batch_id, entries in groupby(rows, key=_BATCH):
        together = list(entries)
        batch = batches.get(batch_id)
        added = _sound(kind, together, batch, parts) if batch is not None else None
        if added is None:
            yield from examine(kind, together, batch, parts, sums)
        else:
            sums.update(added)


def _check_archived(connection: Connection[Any], file: Found, batches: dict[int, Batch], parts: Parts, checked: Checked) -> Iterator[Fault]:
    """The entries of a file like those of the tables. What the tables have too is checked in both, and counts once."""
    places = {batch_id: replace(batch, seen=bytearray(len(batch.seen))) for batch_id, batch in batches.items()}
    for kind in KINDS:
        entries = [entry for entry in file.entries if entry.kind is kind]
        if parts.opens and kind.sealed and entries:
            parts.read(connection, {shipment_id for entry in entries for shipment_id in entry.shipments()})
        fresh = [entry.counted for entry in entries if not _is_seen(batches, entry)]
        known = [entry.counted for entry in entries if _is_seen(batches, entry)]
        checked.entries += len(fresh)
        checked.events += len(fresh) if kind.name == "event" else 0
        for fault in (*_check(kind, fresh, places, parts, checked.sums), *_check(kind, known, places, parts, Sums())):
            yield replace(fault, table=f"{file.name}, {fault.table}")
    for batch_id, batch in places.items():
        seen = batches[batch_id].seen
        for ordinal, rank in enumerate(batch.seen):
            seen[ordinal] = seen[ordinal] or rank


def _is_seen(batches: dict[int, Batch], entry: Entry) -> bool:
    batch = batches.get(entry.batch_id)
    return batch is not None and entry.ordinal < len(batch.seen) and bool(batch.seen[entry.ordinal])


def _sound(kind: Kind, rows: Sequence[Any], batch: Batch, parts: Parts) -> Sums | None:
    """What the rows, all of one batch, add to the sums of chains.

    None: something is wrong, or they do not stand in their order, and no place was taken.
    """
    _, ordinals, leaf_hashes, canonicals, *_ = zip(*rows, strict=True)
    first, after = ordinals[0], ordinals[0] + len(rows)
    digests = tuple([sha256(b"\x00" + canonical).digest() for canonical in canonicals])
    in_batch = batch.leaf_hashes[HASH_BYTES * first : HASH_BYTES * after]
    if ordinals != tuple(range(first, after)) or digests != leaf_hashes or b"".join(digests) != in_batch:
        return None
    sums = Sums()
    try:
        documents = [kind.decode(canonical) for canonical in canonicals]
        same = [row[FIRST_VALUE:] for row in rows] == [kind.expected(document) for document in documents]
        if kind.name == "event" and batch.summed:
            links = zip(documents, digests, strict=True)
            add_events(sums, [(document.shipment_id, document.version, digest, document.previous_hash) for document, digest in links])
    except ValueError:
        return None
    recorded = [row[FIRST_VALUE + kind.recorded] for row in rows]
    if not (same and fits(kind, min(recorded), batch) and fits(kind, max(recorded), batch)):
        return None
    if kind.sealed and parts.opens and any(parts.fault(document, row[4]) for row, document in zip(rows, documents, strict=True)):
        return None
    return sums if batch.take(first, len(rows), kind.rank) else None

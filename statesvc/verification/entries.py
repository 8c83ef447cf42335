"""One stretch of batches: each entry's bytes against its hash, its columns, its batch and its sealed part; each batch against the queue."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import orjson
from psycopg import Connection

from events.entry import FORMAT
from events.sealing import MasterKeys
from events.sql.queries import queries
from events.tree.hashing import HASH_BYTES
from statesvc.verification.chain import Sums, add_event
from statesvc.verification.columns import KINDS, Kind
from statesvc.verification.fault import FAULTS_MAX, Fault
from statesvc.verification.parts import Parts

SQL = queries("statesvc.verification", "entries")
_FIRST_VALUE: Final = 5
"""Before it each query selects batch_id, ordinal, leaf_hash, canonical and sealed_part."""
_EXACT: Final = frozenset({"conflict", "attempt", "action"})
"""Recorded at the very time of their batch; events and what they caused may be microseconds later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Batch ids from `low` up to but not including `high`.

    Chains are summed over what was there at one moment: batches sealed below `sealed_below`, and those in `waiting`.
    """

    low: int
    high: int
    sealed_below: int
    waiting: frozenset[int]


@dataclass(slots=True)
class Checked:
    """What a stretch holds, and what is wrong in it."""

    entries: int = 0
    events: int = 0
    batches: int = 0
    sums: Sums = field(default_factory=Sums)
    faults: list[Fault] = field(default_factory=list)


@dataclass(slots=True)
class _Batch:
    recorded_at: datetime
    leaf_hashes: bytes
    seen: bytearray
    summed: bool


def check_stretch(connection: Connection[Any], stretch: Stretch, master: MasterKeys | None) -> Checked:
    """Reads and checks a stretch as of one moment."""
    checked = Checked()
    bounds = {"low": stretch.low, "high": stretch.high}
    parts = Parts(master)
    with connection.transaction():
        connection.execute(SQL["snapshot"])
        found: list[Fault] = []
        batches = _batches(connection, bounds, stretch, found)
        for kind in KINDS:
            rows = connection.execute(SQL[kind.name], bounds, binary=True).fetchall()
            checked.entries += len(rows)
            checked.events += len(rows) if kind.name == "event" else 0
            if parts.opens and kind.name not in {"transition", "action"}:
                parts.read(connection, {value for row in rows for value in (row[5], row[6]) if isinstance(value, str)})
            found += islice(_check(kind, rows, batches, parts, checked.sums), FAULTS_MAX)
    checked.batches = len(batches)
    found += islice(_places(batches), FAULTS_MAX)
    checked.faults = found[:FAULTS_MAX]
    return checked


def _batches(connection: Connection[Any], bounds: dict[str, int], stretch: Stretch, faults: list[Fault]) -> dict[int, _Batch]:
    batches = {}
    for batch_id, recorded_at, entries, leaf_hashes, first_index, waits in connection.execute(SQL["batches"], bounds, binary=True):
        row = f"batch_id={batch_id}"
        if len(leaf_hashes) != entries * HASH_BYTES:
            faults.append(Fault("batch", row, "entries", "is not the number of its leaf hashes"))
        if first_index is None and not waits:
            faults.append(Fault("batch", row, "batch_id", "is neither sealed nor waiting to be sealed"))
        elif first_index is not None and waits:
            faults.append(Fault("unsealed", row, "batch_id", "waits to be sealed, though it is"))
        summed = batch_id in stretch.waiting or (first_index is not None and first_index < stretch.sealed_below)
        batches[batch_id] = _Batch(recorded_at, leaf_hashes, bytearray(len(leaf_hashes) // HASH_BYTES), summed)
    return batches


def _check(kind: Kind, rows: list[Any], batches: dict[int, _Batch], parts: Parts, sums: Sums) -> Iterator[Fault]:
    is_event, exact = kind.name == "event", kind.name in _EXACT
    opens = parts.opens and kind.name not in {"transition", "action"}
    recorded = kind.columns.index("recorded_at")
    for row in rows:
        batch_id, ordinal, leaf_hash, canonical, sealed_part = row[:_FIRST_VALUE]
        values = row[_FIRST_VALUE:]
        batch = batches.get(batch_id)
        if batch is None or not 0 <= ordinal < len(batch.seen) or batch.seen[ordinal]:
            yield Fault(kind.name, kind.row(values, batch_id, ordinal), "ordinal", _misplaced(batch, ordinal))
            continue
        batch.seen[ordinal] = kind.rank
        computed = sha256(b"\x00" + canonical).digest()
        in_batch = batch.leaf_hashes[HASH_BYTES * ordinal : HASH_BYTES * ordinal + HASH_BYTES]
        if not computed == leaf_hash == in_batch:
            yield _wrong_hash(kind, row, computed, in_batch)
            continue
        try:
            document = orjson.loads(canonical)
            same = values == kind.expected(document) and document["entry"] == kind.name and document["format"] <= FORMAT
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            yield Fault(kind.name, kind.row(values, batch_id, ordinal), "canonical", f"is no {kind.name} of a format that is known here")
            continue
        if not same:
            yield from _wrong_columns(kind, row, document)
        recorded_at = values[recorded]
        if recorded_at < batch.recorded_at or (exact and recorded_at != batch.recorded_at):
            yield Fault("batch", f"batch_id={batch_id}", "recorded_at", f"does not fit that of its {kind.name} at ordinal {ordinal}")
        if opens and (why := parts.fault(document, sealed_part)) is not None:
            yield Fault(kind.name, kind.row(values, batch_id, ordinal), "sealed_part", why)
        if is_event and batch.summed:
            add_event(sums, values[0], values[1], leaf_hash=computed, previous_hash=document["previous_hash"])


def _misplaced(batch: _Batch | None, ordinal: int) -> str:
    if batch is None:
        return "its batch does not exist: it was inserted, or the batch was deleted"
    if not 0 <= ordinal < len(batch.seen):
        return f"its batch has only {len(batch.seen)} entries: it was inserted, or the batch was cut"
    return "another entry stands there already"


def _wrong_hash(kind: Kind, row: Any, computed: bytes, in_batch: bytes) -> Fault:  # noqa: ANN401 - a row
    batch_id, ordinal, leaf_hash = row[:3]
    named = kind.row(row[_FIRST_VALUE:], batch_id, ordinal)
    if leaf_hash == in_batch:
        return Fault(kind.name, named, "canonical", "was changed: its hash is not the leaf hash that row and batch have")
    if computed == in_batch:
        return Fault(kind.name, named, "leaf_hash", "was changed: the canonical bytes and the batch have another one")
    if computed == leaf_hash:
        return Fault("batch", f"batch_id={batch_id}", f"leaf_hashes, ordinal {ordinal}", f"is not the leaf hash of {kind.name} ({named})")
    return Fault(kind.name, named, "canonical, leaf_hash", "neither fits the batch")


def _wrong_columns(kind: Kind, row: Any, document: Any) -> Iterator[Fault]:  # noqa: ANN401 - a row and JSON
    batch_id, ordinal = row[:2]
    values = row[_FIRST_VALUE:]
    named = kind.row(values, batch_id, ordinal)
    for name, value, expected in zip(kind.columns, values, kind.expected(document), strict=True):
        if value != expected:
            yield Fault(kind.name, named, name, "is not what the entry's canonical bytes say")
    if document["entry"] != kind.name or document["format"] > FORMAT:
        yield Fault(kind.name, named, "canonical", f"is no {kind.name} of a format that is known here")


def _places(batches: dict[int, _Batch]) -> Iterator[Fault]:
    """Every place of a batch is taken, and the kinds stand in their order."""
    for batch_id, batch in batches.items():
        row = f"batch_id={batch_id}"
        if 0 in batch.seen:
            for ordinal, rank in enumerate(batch.seen):
                if not rank:
                    missing = batch.leaf_hashes[HASH_BYTES * ordinal : HASH_BYTES * ordinal + HASH_BYTES].hex()
                    yield Fault(
                        "batch", row, f"leaf_hashes, ordinal {ordinal}", f"the entry with leaf hash {missing} is missing: it was deleted"
                    )
        elif list(batch.seen) != sorted(batch.seen):
            yield Fault("batch", row, "leaf_hashes", "the kinds of entries do not stand in their order")

"""Entry by entry, where a batch is not as it must be: what is wrong, and in which row and column."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final

from statesvc.log.entry_columns import Kind
from statesvc.log.verify.batches import Batch
from statesvc.log.verify.chain import Sums, add_events
from statesvc.log.verify.fault import Fault
from statesvc.log.verify.parts import Parts

FIRST_VALUE: Final = 5
"""Before it a row has batch_id, ordinal, leaf_hash, canonical and sealed_part."""


def examine(kind: Kind, rows: Iterable[Any], batch: Batch | None, parts: Parts, sums: Sums) -> Iterator[Fault]:
    """The faults of the rows of one kind that name one batch. What passes takes its place and is added to its chain."""
    for row in rows:
        batch_id, ordinal, leaf_hash, canonical, sealed_part = row[:FIRST_VALUE]
        values = row[FIRST_VALUE:]
        named = kind.row(values, batch_id, ordinal)
        if batch is None or not batch.take(ordinal, 1, kind.rank):
            yield Fault(kind.name, named, "ordinal", _misplaced(batch, ordinal))
            continue
        computed = sha256(b"\x00" + canonical).digest()
        if not computed == leaf_hash == batch.leaf_hash(ordinal):
            yield _wrong_hash(kind, row, computed, batch.leaf_hash(ordinal))
            continue
        try:
            document = kind.decode(canonical)
            expected = kind.expected(document)
            if kind.name == "event" and batch.summed:
                add_events(sums, [(values[0], values[1], computed, document.previous_hash)])
        except ValueError:
            yield Fault(kind.name, named, "canonical", f"is no {kind.name} of a format that is known here")
            continue
        if values != expected:
            yield from _wrong_columns(kind, row, expected)
        if not fits(kind, values[kind.recorded], batch):
            yield Fault("batch", f"batch_id={batch_id}", "recorded_at", f"does not fit that of its {kind.name} at ordinal {ordinal}")
        if kind.sealed and parts.opens and (why := parts.fault(document, sealed_part)) is not None:
            yield Fault(kind.name, named, "sealed_part", why)


def fits(kind: Kind, recorded_at: int, batch: Batch) -> bool:
    """Whether an entry may have this time in its batch: events and what they caused may be microseconds later, others not."""
    return recorded_at == batch.recorded_at or (recorded_at > batch.recorded_at and not kind.exact)


def _misplaced(batch: Batch | None, ordinal: int) -> str:
    if batch is None:
        return "its batch does not exist: it was inserted, or the batch was deleted"
    if not 0 <= ordinal < len(batch.seen):
        return f"its batch has only {len(batch.seen)} entries: it was inserted, or the batch was cut"
    return "another entry stands there already"


def _wrong_hash(kind: Kind, row: Any, computed: bytes, in_batch: bytes) -> Fault:  # noqa: ANN401 - a row
    batch_id, ordinal, leaf_hash = row[:3]
    named = kind.row(row[FIRST_VALUE:], batch_id, ordinal)
    if leaf_hash == in_batch:
        return Fault(kind.name, named, "canonical", "was changed: its hash is not the leaf hash that row and batch have")
    if computed == in_batch:
        return Fault(kind.name, named, "leaf_hash", "was changed: the canonical bytes and the batch have another one")
    if computed == leaf_hash:
        return Fault("batch", f"batch_id={batch_id}", f"leaf_hashes, ordinal {ordinal}", f"is not the leaf hash of {kind.name} ({named})")
    return Fault(kind.name, named, "canonical, leaf_hash", "neither fits the batch")


def _wrong_columns(kind: Kind, row: Any, expected: tuple[Any, ...]) -> Iterator[Fault]:  # noqa: ANN401 - a row
    batch_id, ordinal = row[:2]
    values = row[FIRST_VALUE:]
    named = kind.row(values, batch_id, ordinal)
    for name, found, wanted in zip(kind.columns, values, expected, strict=True):
        if found != wanted:
            yield Fault(kind.name, named, name, "is not what the entry's canonical bytes say")

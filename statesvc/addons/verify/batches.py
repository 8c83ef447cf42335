"""The batches of a range: promised leaf hashes, position, and whether every place is filled."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import Cursor

from events.merkle.node import HASH_BYTES
from statesvc.addons.verify.fault import LogFault
from statesvc.addons.verify.forks import LogFork, epoch_of_batch
from statesvc.database.queries import queries

_SQL: Final = queries("statesvc.addons.verify", "entries")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRange:
    """Batch ids from `low` up to but not including `high`.

    Chains are summed over one snapshot: batches sealed below `sealed_below`, and those in
    `waiting`. So are dedupe keys, hashed under `secret`.
    """

    low: int
    high: int
    sealed_below: int
    waiting: frozenset[int]
    secret: bytes
    forks: Sequence[LogFork] = ()
    deletions: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class BatchPositions:
    """`seen`: the rank of the kind that took each place, 0 for none yet.

    Times in microseconds since 2000.
    """

    recorded_from: int
    recorded_to: int
    leaf_hashes: bytes
    seen: bytearray
    summed: bool
    epoch: int

    def leaf_hash(self, ordinal: int) -> bytes:
        return self.leaf_hashes[HASH_BYTES * ordinal : HASH_BYTES * ordinal + HASH_BYTES]

    def take(self, ordinal: int, rank: int) -> bool:
        """Take a place; return False where it does not exist or is taken."""
        if not 0 <= ordinal < len(self.seen) or self.seen[ordinal]:
            return False
        self.seen[ordinal] = rank
        return True


def read_batches(
    cursor: Cursor[Any], batch_range: BatchRange, faults: list[LogFault]
) -> dict[int, BatchPositions]:
    """Read the batches of a range by id. `cursor` reads times as microseconds."""
    batches = {}
    rows = cursor.execute(_SQL["batches"], {"low": batch_range.low, "high": batch_range.high})
    for batch_id, recorded_from, recorded_to, entries, leaf_hashes, first_index, waits in rows:
        row = f"batch_id={batch_id}"
        if len(leaf_hashes) != entries * HASH_BYTES:
            faults.append(LogFault("batch", row, "entries", "is not the number of its leaf hashes"))
        if first_index is not None and waits:
            faults.append(LogFault("unsealed", row, "batch_id", "waits to be sealed, though it is"))
        summed = batch_id in batch_range.waiting or (
            first_index is not None and first_index < batch_range.sealed_below
        )
        seen, epoch = (
            bytearray(len(leaf_hashes) // HASH_BYTES),
            epoch_of_batch(batch_range.forks, batch_id),
        )
        batches[batch_id] = BatchPositions(
            recorded_from, recorded_to, leaf_hashes, seen, summed, epoch
        )
    return batches


def untaken(batches: Mapping[int, BatchPositions]) -> Iterator[LogFault]:
    """Yield a fault for each place of a batch that is not taken, the kinds in their order."""
    for batch_id, batch in batches.items():
        row = f"batch_id={batch_id}"
        if 0 in batch.seen:
            for ordinal, rank in enumerate(batch.seen):
                if not rank:
                    missing = batch.leaf_hash(ordinal).hex()
                    yield LogFault(
                        "batch",
                        row,
                        f"leaf_hashes, ordinal {ordinal}",
                        f"the entry with leaf hash {missing} is missing: it was deleted",
                    )
        elif list(batch.seen) != sorted(batch.seen):
            yield LogFault(
                "batch", row, "leaf_hashes", "the kinds of entries do not stand in their order"
            )

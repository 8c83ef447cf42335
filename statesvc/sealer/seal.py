"""One pass of the leader: the batches that are committed get their places, at once and without a gap."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from events.merkle.compact_range import CompactRange
from statesvc.database.queries import queries
from statesvc.log.tree_nodes import split_hashes


class RefusalError(RuntimeError):
    """The log is not the one that was published: sealing on would sign two different histories. The message says what is found."""


SQL = queries("statesvc.sealer", "seal")
BATCHES_MAX: Final = 500
"""In one pass: a few MiB of leaf hashes."""
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedLog:
    """How far the log is sealed. `sealed_at` None: nothing is. `tree` is not to be changed."""

    tree: CompactRange
    sealed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SealPass:
    """What a pass did. `oldest` is when the batch that waited longest was recorded; `last_batch_id` the highest that was sealed."""

    sealed: SealedLog
    batches: int = 0
    entries: int = 0
    oldest: datetime | None = None
    last_batch_id: int = 0

    @property
    def full(self) -> bool:
        """Whether more may be waiting."""
        return self.batches == BATCHES_MAX


async def seal(connection: AsyncConnection[Any], before: SealedLog, *, from_id: int) -> SealPass:
    """Places the batches from `from_id` on, in one statement. Raises RefusalError.

    Between reading and placing nobody else changes the queue's rows: only the leader takes them away, and this connection has the lead.
    """
    rows = await (await connection.execute(SQL["next_batches"], {"from_id": from_id, "limit": BATCHES_MAX}, binary=True)).fetchall()
    if not rows:
        return SealPass(sealed=before)
    clock = rows[0][3]
    sealed_at = clock if before.sealed_at is None else max(clock, before.sealed_at + _TICK)
    tree = before.tree.copy()
    places, subtrees = [], []
    for batch_id, recorded_at, leaf_hashes, _ in rows:
        if leaf_hashes is None:
            raise RefusalError(f"batch {batch_id} waits to be sealed, but its row is gone: someone deleted it")
        leaves = split_hashes(leaf_hashes)
        places.append((tree.size, batch_id, recorded_at, len(leaves)))
        subtrees += tree.extend(leaves)
    first_indexes, batch_ids, recorded_ats, entries = map(list, zip(*places, strict=True))
    await connection.execute(
        SQL["place_batches"],
        {
            "first_indexes": first_indexes,
            "batch_ids": batch_ids,
            "recorded_ats": recorded_ats,
            "entries": entries,
            "sealed_at": sealed_at,
            "levels": [subtree.node.level for subtree in subtrees],
            "positions": [subtree.node.position for subtree in subtrees],
            "hashes": [subtree.hash for subtree in subtrees],
        },
    )
    return replace(
        SealPass(sealed=SealedLog(tree=tree, sealed_at=sealed_at)),
        batches=len(rows),
        entries=tree.size - before.tree.size,
        oldest=min(recorded_ats),
        last_batch_id=batch_ids[-1],
    )

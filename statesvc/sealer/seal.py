"""A pass of the leader: gives the committed batches their indexes, at once and without a gap."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.errors import UniqueViolation

from events.entry.kinds import FIRST_EPOCH
from events.merkle.compact_range import CompactRange
from statesvc.database.queries import queries
from statesvc.log.batch_row import recorded_too_early
from statesvc.log.tree_nodes import split_hashes


class RefusalError(RuntimeError):
    """The log is not the published log: sealing it would sign two different histories."""


class ForkError(RefusalError):
    """The log has another history than the one that was published: nobody may be notified of it
    until a human has decided.
    """


SQL = queries("statesvc.sealer", "seal")
# In one pass: a few MiB of leaf hashes.
BATCHES_MAX: Final = 500
# Batches checked between two passes, in some milliseconds.
FORGOTTEN_IDS_MAX: Final = 20_000
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedLog:
    """Extent of the sealed log. `sealed_at` None: empty. `tree` is not to be changed.

    `recorded_until`: its latest time, about.
    """

    tree: CompactRange
    sealed_at: datetime | None
    recorded_until: datetime | None = None
    epoch: int = FIRST_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class SealPass:
    """Result of a pass.

    `oldest` is when the batch that waited longest was recorded; `last_batch_id` the
    highest that was sealed.
    """

    sealed: SealedLog
    batches: int = 0
    entries: int = 0
    oldest: datetime | None = None
    back_dated: tuple[int, ...] = ()
    """Ids of batches that say an earlier time than they can have been recorded at."""
    last_batch_id: int = 0
    transaction_id: int = 0

    @property
    def full(self) -> bool:
        """True if more may be waiting."""
        return self.batches == BATCHES_MAX


@dataclass(frozen=True, slots=True)
class Writers:
    """The highest batch id in use, and the id of the oldest transaction that still writes."""

    last_batch_id: int
    oldest: int


async def read_writers(connection: AsyncConnection[Any]) -> Writers:
    """Read the writers as they are now, in a statement of its own before the pass."""
    row = await (await connection.execute(SQL["writers"])).fetchone()
    assert row is not None  # noqa: S101 - one row, always
    return Writers(*row)


class SealMark:
    """The batch id from which a pass reads, to skip sealed rows that vacuum cannot remove yet.

    A writer takes its transaction id before its batch id. A pass that seals takes one too,
    after it has read the highest batch id given out; once every older transaction is over, no
    batch up to that id can appear any more. The snapshot's `xmax` would not do: it follows the
    last transaction that has ended, and a transaction that still writes may be beyond it. A
    transaction that stays open holds back this mark, never a pass.
    """

    def __init__(self) -> None:
        self.from_id = 0
        self._known: int | None = None
        """The highest batch id that was given out before the transaction `_until`."""
        self._until = 0

    def passed(self, writers: Writers, done: SealPass) -> None:
        """Advance after a pass from the mark on. `writers` were read before it."""
        if self._known is not None and writers.oldest >= self._until:
            self.from_id = max(
                self.from_id,
                (min(self._known, done.last_batch_id) if done.full else self._known) + 1,
            )
            self._known = None
        if self._known is None and done.batches:
            self._known, self._until = writers.last_batch_id, done.transaction_id


class ForgottenBatches:
    """Queues batches that were not queued because the trigger was disabled.

    It checks the whole log once, then later batches.
    """

    def __init__(self) -> None:
        self.caught_up = False
        """True once the whole log was checked."""
        self._from_id = 0
        self._swept_to = 0

    async def requeue(self, connection: AsyncConnection[Any], writers: Writers) -> list[int]:
        """Queue those of the next ids, and return them.

        At the end it stays where the last sweep ended: ids commit late.
        """
        to_id = min(writers.last_batch_id, self._from_id + FORGOTTEN_IDS_MAX)
        # reads months of the log: a prepared plan for all of them would cost more
        rows = await connection.execute(
            SQL["requeue_forgotten"], {"from_id": self._from_id, "to_id": to_id}, prepare=False
        )
        found = [batch_id for (batch_id,) in await rows.fetchall()]
        if to_id < writers.last_batch_id:
            self._from_id = self._swept_to = to_id
        else:
            self.caught_up = True
            # one sweep behind: an id below `to_id` may commit after this one looked
            self._from_id, self._swept_to = self._swept_to, to_id
        return found


async def seal(connection: AsyncConnection[Any], before: SealedLog, *, from_id: int) -> SealPass:
    """Place the batches from `from_id` on that one snapshot shows, the lowest
    first, in one statement.

    Raises RefusalError.

    Between reading and placing nobody else changes the queue's rows: only the leader removes them,
    and this connection has the lead.
    """
    rows = await (
        await connection.execute(
            SQL["next_batches"], {"from_id": from_id, "limit": BATCHES_MAX}, binary=True
        )
    ).fetchall()
    if not rows:
        return SealPass(sealed=before)
    clock = rows[0][-1]
    # strictly later than the last pass, whatever the clock did: `as_of` needs one order
    sealed_at = clock if before.sealed_at is None else max(clock, before.sealed_at + _TICK)
    # a copy: a failed pass must leave the sealed tree as it was
    tree = before.tree.copy()
    places, subtrees = [], []
    for batch_id, recorded_from, recorded_to, leaf_hashes, _ in rows:
        # the trigger queued it in the transaction that wrote it, so it cannot be merely late
        if leaf_hashes is None:
            raise RefusalError(
                f"batch {batch_id} waits to be sealed, but its row is gone: someone deleted it"
            )
        leaves = split_hashes(leaf_hashes)
        places.append((tree.size, batch_id, recorded_from, recorded_to, len(leaves)))
        subtrees += tree.extend(leaves)
    first_indexes, batch_ids, recorded_froms, recorded_tos, entries = map(
        list, zip(*places, strict=True)
    )
    try:
        placed = await connection.execute(
            SQL["place_batches"],
            {
                "first_indexes": first_indexes,
                "batch_ids": batch_ids,
                "recorded_froms": recorded_froms,
                "recorded_tos": recorded_tos,
                "entries": entries,
                "sealed_at": sealed_at,
                "levels": [subtree.node.level for subtree in subtrees],
                "positions": [subtree.node.position for subtree in subtrees],
                "hashes": [subtree.hash for subtree in subtrees],
            },
        )
    except UniqueViolation as error:
        # the other unique index is that of the first indexes: a violation there says nothing about
        # ids
        if error.diag.constraint_name != "sealed_batch_place":
            raise
        raise RefusalError(
            f"one of the batches {batch_ids[0]} to {batch_ids[-1]} has the id of a sealed one: ids"
            " were given out twice"
        ) from error
    row = await placed.fetchone()
    assert row is not None  # noqa: S101 - one row, always
    before_these = (
        [] if before.recorded_until is None else [(before.recorded_until, before.recorded_until)]
    )
    early = recorded_too_early([*before_these, *zip(recorded_froms, recorded_tos, strict=True)])
    recorded_until = max(
        recorded_froms
        if before.recorded_until is None
        else [before.recorded_until, *recorded_froms]
    )
    return replace(
        SealPass(
            sealed=replace(before, tree=tree, sealed_at=sealed_at, recorded_until=recorded_until)
        ),
        back_dated=tuple(batch_ids[place - len(before_these)] for place in early),
        batches=len(rows),
        entries=tree.size - before.tree.size,
        oldest=min(recorded_froms),
        last_batch_id=batch_ids[-1],
        transaction_id=row[0],
    )

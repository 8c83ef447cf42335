"""The tree, in ranges: batches stand one after the other, retained nodes are what the leaves give,
heads are signed and of their pass.

Ranges are checked on their own, by any process in any order; `TreeBuilder` then joins what they
found, from left to right, and holds each signed root against it. Keys are believed in turn: those
that the verification began with, and any other once a head that a believed key has signed covers
its announcement in the log. Heads that a believed head covers (`covered`) may be signed by older
keys: their entries are the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from psycopg import Connection

from events.merkle.checkpoint import NoteError, VerifierKey, open_checkpoint
from events.merkle.compact_range import STRIDE, CompactRange
from events.merkle.node import HASH_BYTES
from statesvc.addons.verify.fault import FAULTS_MAX, LogFault
from statesvc.addons.verify.forks import LogFork, epoch_at
from statesvc.database.queries import queries
from statesvc.log.batch_row import recorded_too_early

SQL: Final = queries("statesvc.addons.verify", "tree")
# Leaves below a node of the lowest retained level.
BLOCK: Final = 1 << STRIDE
# Leaves that are checked at once; they stand below one node of the second retained level.
RANGE_LEAVES: Final = BLOCK * BLOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedRoot:
    """A root to be held against the tree: a checkpoint's, or of a head that was stored elsewhere.

    `rest`: the roots of the perfect subtrees between the last whole block and `size`. `signed_by`:
    verifier keys as text.
    """

    size: int
    root: bytes
    rest: tuple[bytes, ...]
    signed_by: tuple[str, ...]
    source: tuple[str, str]
    """Table or file, and row."""


@dataclass(slots=True)
class TreeRange:
    """Contribution of a range to the tree. `blocks`: the roots of its whole blocks."""

    begin: int
    blocks: list[bytes] = field(default_factory=list)
    roots: list[SizedRoot] = field(default_factory=list)
    faults: list[LogFault] = field(default_factory=list)
    remarks: list[LogFault] = field(default_factory=list)
    """Remarks for a human about a sealed and unchanged log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRules:
    """Rules that heads are checked against: the keys that there are, the name of the log, its
    forks, and roots known from elsewhere.
    """

    keys: Sequence[VerifierKey]
    origin: str
    forks: Sequence[LogFork]
    roots: Sequence["RetainedHead"]


@dataclass(frozen=True, slots=True)
class RetainedHead:
    """A head that was stored elsewhere, opened already; or the root that a fork says, signed by
    nobody but the heads above it.
    """

    size: int
    root: bytes
    signed_by: tuple[str, ...]
    name: str


def check_tree(connection: Connection[Any], *, begin: int, end: int, rules: HeadRules) -> TreeRange:
    """Check the leaves from `begin` (a multiple of `RANGE_LEAVES`) up to but not including
    `end`.
    """
    grown = TreeRange(begin)
    bounds = {"begin": begin, "end": end}
    heads = connection.execute(SQL["heads"], bounds, binary=True).fetchall()
    rows = connection.execute(SQL["sealed"], bounds, binary=True).fetchall()
    grown.faults += _seal_times(rows, heads, end)
    # a remark, no fault: a clock that was set back does not change the log
    grown.remarks += islice(_recorded_too_early(rows, rules.forks), FAULTS_MAX)
    leaves = _leaves(connection, rows, begin, end, grown.faults)
    wanted: list[tuple[int, Any]] = [(head[0], head) for head in heads if head[0] <= end]
    wanted += [(known.size, known) for known in rules.roots if begin < known.size <= end]
    wanted.sort(key=itemgetter(0))
    for first in range(0, len(leaves), BLOCK):
        block = leaves[first : first + BLOCK]
        low, high = begin + first, begin + first + len(block)
        tree = CompactRange()
        for size, head in [each for each in wanted if low < each[0] <= high]:
            tree.extend(block[tree.size : size - low])
            # a whole block is not a rest: it is below its own node
            rest = () if size - low == BLOCK else tree.roots
            grown.roots.append(
                _retained(head, rest)
                if isinstance(head, RetainedHead)
                else _sized(head, rules, rest, grown.faults)
            )
        if len(block) == BLOCK:
            grown.blocks.append(tree.roots[0] if tree.size == BLOCK else _whole(block))
    grown.faults += _subtrees(connection, STRIDE, begin // BLOCK, grown.blocks)
    if len(grown.blocks) == BLOCK:
        grown.faults += _subtrees(
            connection, 2 * STRIDE, begin // RANGE_LEAVES, [_whole(grown.blocks)]
        )
    del grown.faults[FAULTS_MAX:]
    return grown


def unexpected_subtree(connection: Connection[Any]) -> Iterator[LogFault]:
    """Yield a retained node that the tree does not have."""
    row = connection.execute(SQL["unexpected_subtree"]).fetchone()
    if row is not None:
        yield LogFault(
            "subtree", f"level={row[0]} position={row[1]}", "position", "the tree has no such node"
        )


def _leaves(
    connection: Connection[Any], rows: Sequence[Any], begin: int, end: int, faults: list[LogFault]
) -> list[bytes]:
    """Return the leaf hashes in their order.

    Where some are missing the rest cannot be in its place.
    """
    joined: list[bytes] = []
    expected: int | None = None
    for first_index, batch_id, *_, entries, _, batch_entries, leaf_hashes in rows:
        row = f"first_index={first_index} batch_id={batch_id}"
        if expected is None and first_index > begin:
            expected = begin
        if expected is not None and first_index != expected:
            faults.append(
                LogFault(
                    "sealed_batch",
                    row,
                    "first_index",
                    f"follows index {expected - 1}: the places are not dense",
                )
            )
        if leaf_hashes is None:
            exists = connection.execute(SQL["batch_exists"], {"batch_id": batch_id}).fetchone() or (
                False,
            )
            why = (
                "is not that of its batch" if exists[0] else "its batch is missing: it was deleted"
            )
            faults.append(
                LogFault("sealed_batch", row, "recorded_from" if exists[0] else "batch_id", why)
            )
            # so that the rest keeps its place
            leaf_hashes = bytes(HASH_BYTES * entries)  # noqa: PLW2901
        elif batch_entries != entries:
            faults.append(
                LogFault("sealed_batch", row, "entries", f"the batch has {batch_entries}")
            )
        joined.append(leaf_hashes[HASH_BYTES * max(0, begin - first_index) :])
        expected = first_index + entries
    if expected is None or expected < end:
        faults.append(
            LogFault(
                "sealed_batch",
                f"first_index={expected or begin}",
                "first_index",
                f"nothing is sealed there, though heads reach to {end}",
            )
        )
    whole = b"".join(joined)[: HASH_BYTES * (end - begin)]
    return [whole[at : at + HASH_BYTES] for at in range(0, len(whole), HASH_BYTES)]


def _seal_times(rows: Sequence[Any], heads: Sequence[Any], end: int) -> Iterator[LogFault]:
    """Check that each batch was sealed at the time of the first head that covers it."""
    place = 0
    for first_index, batch_id, *_, entries, sealed_at, _, _ in rows:
        while place < len(heads) and heads[place][0] < first_index + entries:
            place += 1
        row = f"first_index={first_index} batch_id={batch_id}"
        if place == len(heads):
            # the last batch of a range may be covered by a head of the next one
            if first_index + entries <= end:
                yield LogFault("sealed_batch", row, "first_index", "no head covers it")
            return
        if sealed_at != heads[place][3]:
            why = f"is not the created_at of the checkpoint with tree_size={heads[place][0]}"
            yield LogFault("sealed_batch", row, "sealed_at", why)


def _recorded_too_early(rows: Sequence[Any], forks: Sequence[LogFork]) -> Iterator[LogFault]:
    # a fork's batch is sealed before those that waited for it
    first = {fork.batch_id for fork in forks}
    rows = [row for row in rows if row[1] not in first]
    for place in recorded_too_early(
        (recorded_from, recorded_to) for _, _, recorded_from, recorded_to, *_ in rows
    ):
        first_index, batch_id, _, recorded_to, _, sealed_at, *_ = rows[place]
        row = f"first_index={first_index} batch_id={batch_id}"
        why = (
            f"is {recorded_to.isoformat()}, but batches of later times stand before it, sealed by"
            f" {sealed_at.isoformat()}: back-dated"
        )
        yield LogFault("sealed_batch", row, "recorded_to", why)


def _sized(
    head: Any,  # noqa: ANN401 - a row
    rules: HeadRules,
    rest: tuple[bytes, ...],
    faults: list[LogFault],
) -> SizedRoot:
    tree_size, root, note, created_at = head
    row = f"tree_size={tree_size}"
    signed_by: tuple[str, ...] = ()
    try:
        opened = open_checkpoint(note, rules.keys, origin=rules.origin)
    except NoteError as error:
        faults.append(LogFault("checkpoint", row, "note", str(error)))
    else:
        signed_by = tuple(sorted(map(str, opened.signed_by)))
        if opened.checkpoint.size != tree_size:
            faults.append(
                LogFault("checkpoint", row, "tree_size", f"the note says {opened.checkpoint.size}")
            )
        if opened.checkpoint.epoch != (epoch := epoch_at(rules.forks, tree_size)):
            faults.append(
                LogFault(
                    "checkpoint",
                    row,
                    "note",
                    f"is of epoch {opened.checkpoint.epoch}, the log there of epoch {epoch}",
                )
            )
        if opened.checkpoint.root != root:
            faults.append(LogFault("checkpoint", row, "root", "the note says another one"))
        if opened.signed_at != int(created_at.timestamp()):
            faults.append(
                LogFault(
                    "checkpoint", row, "created_at", "is not the time that the note was signed for"
                )
            )
    return SizedRoot(
        size=tree_size, root=root, rest=rest, signed_by=signed_by, source=("checkpoint", row)
    )


def _retained(retained: RetainedHead, rest: tuple[bytes, ...]) -> SizedRoot:
    return SizedRoot(
        size=retained.size,
        root=retained.root,
        rest=rest,
        signed_by=retained.signed_by,
        source=(retained.name, f"size={retained.size}"),
    )


def _subtrees(
    connection: Connection[Any], level: int, first: int, computed: Sequence[bytes]
) -> Iterator[LogFault]:
    cursor = connection.execute(
        SQL["subtrees"], {"level": level, "begin": first, "end": first + len(computed)}, binary=True
    )
    found = dict(cursor.fetchall())
    for position, node in enumerate(computed, start=first):
        row = f"level={level} position={position}"
        if position not in found:
            yield LogFault("subtree", row, "position", "the row is missing")
        elif found[position] != node:
            leaves = f"{position << level}..{(position + 1 << level) - 1}"
            yield LogFault(
                "subtree",
                row,
                "hash",
                f"is not what the leaves {leaves} give: it or one of them was changed",
            )


def _whole(row: Sequence[bytes]) -> bytes:
    """Return the root over a power of two of hashes."""
    while len(row) > 1:
        row = [
            sha256(b"\x01" + left + right).digest()
            for left, right in zip(row[::2], row[1::2], strict=True)
        ]
    return row[0]


# After a wrong root all later ones are wrong too.
_WRONG_ROOTS_MAX: Final = 1


class TreeBuilder:
    """`announced`: index of the announcement by key."""

    def __init__(
        self, trusted: Iterable[str], announced: Mapping[str, int], *, covered: int = 0
    ) -> None:
        self.tree = CompactRange()
        self.trusted = set(trusted)
        self.heads = 0
        self.last_good = 0
        self.wrong_roots = 0
        self.covered = covered
        self._announced = announced

    def join(self, grown: TreeRange) -> list[LogFault]:
        faults = list(grown.faults)
        blocks = iter(grown.blocks)
        for asked in grown.roots:
            while self.tree.size + BLOCK <= asked.size:
                self.tree.append_subtree(STRIDE, next(blocks))
            faults += self._hold(asked)
        for block in blocks:
            self.tree.append_subtree(STRIDE, block)
        return faults

    def _hold(self, asked: SizedRoot) -> Iterable[LogFault]:
        table, row = asked.source
        # of a copy: the head may lie in the middle of a block that the next range goes on with
        tree = self.tree.copy()
        for level, root in zip(_levels(asked.size % BLOCK), asked.rest, strict=True):
            tree.append_subtree(level, root)
        self.heads += table == "checkpoint"
        if tree.root() != asked.root:
            self.wrong_roots += 1
            if self.wrong_roots <= _WRONG_ROOTS_MAX:
                where = (
                    f"one of the entries {self.last_good}..{asked.size - 1} was changed, moved,"
                    " removed or added since it was signed"
                )
                yield LogFault(
                    table,
                    row,
                    "root",
                    f"is not the root of the log's first {asked.size} entries: {where}",
                )
            return
        if asked.signed_by:
            # below the trusted head the entries are proved by it, whoever signed them then
            if asked.size > self.covered and self.trusted.isdisjoint(asked.signed_by):
                yield LogFault(
                    table, row, "note", "is signed by a key that no trusted key has announced"
                )
                return
            self.trusted.update(key for key, index in self._announced.items() if index < asked.size)
        self.last_good = asked.size


def _levels(count: int) -> list[int]:
    """Return the levels of the perfect subtrees that make up `count` leaves, the highest first."""
    return [level for level in reversed(range(count.bit_length())) if count >> level & 1]

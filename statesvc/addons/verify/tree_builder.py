"""The tree from left to right: what was found in the ranges is joined, and each signed
root is held against it.

Keys are believed in turn: those that the verification began with, and any other once a head that a
believed key has signed covers its announcement in the log. Heads that a believed head covers
(`covered`) may be signed by older keys: their entries are the same.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from events.merkle.compact_range import STRIDE, CompactRange
from statesvc.addons.verify.fault import LogFault
from statesvc.addons.verify.tree_range import BLOCK, SizedRoot, TreeRange

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

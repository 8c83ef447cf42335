"""The tree from left to right: what the stretches found is joined, and each signed root is held against it.

Keys are believed in turn: the first one, or those that the caller brought, and any other once a head that a believed key has signed covers
its announcement in the log.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from events.merkle.compact_range import STRIDE, Frontier
from statesvc.log.verify.fault import Fault
from statesvc.log.verify.tree_range import BLOCK, Grown, SizedRoot

_WRONG_ROOTS_MAX: Final = 1
"""After a wrong root all later ones are wrong too."""


class Spine:
    """`announced`: index of the announcement by key. `frontier` stands at a multiple of a block."""

    def __init__(self, trusted: Iterable[str], announced: Mapping[str, int], frontier: Frontier | None = None) -> None:
        self.frontier = frontier or Frontier()
        self.trusted = set(trusted)
        self.heads = 0
        self.last_good = 0
        self.wrong_roots = 0
        self._announced = announced

    def join(self, grown: Grown) -> list[Fault]:
        """Adds the next stretch."""
        faults = list(grown.faults)
        blocks = iter(grown.blocks)
        for asked in grown.roots:
            while self.frontier.size + BLOCK <= asked.size:
                self.frontier.append_subtree(STRIDE, next(blocks))
            faults += self._hold(asked)
        for block in blocks:
            self.frontier.append_subtree(STRIDE, block)
        return faults

    def _hold(self, asked: SizedRoot) -> Iterable[Fault]:
        table, row = asked.source
        tree = self.frontier.copy()
        for level, root in zip(_levels(asked.size % BLOCK), asked.rest, strict=True):
            tree.append_subtree(level, root)
        self.heads += table == "checkpoint"
        if tree.root() != asked.root:
            self.wrong_roots += 1
            if self.wrong_roots <= _WRONG_ROOTS_MAX:
                where = f"one of the entries {self.last_good}..{asked.size - 1} was changed, moved, removed or added since it was signed"
                yield Fault(table, row, "root", f"is not the root of the log's first {asked.size} entries: {where}")
            return
        if asked.signed_by:
            if self.trusted.isdisjoint(asked.signed_by):
                yield Fault(table, row, "note", "is signed by a key that no trusted key has announced")
                return
            self.trusted.update(key for key, index in self._announced.items() if index < asked.size)
        self.last_good = asked.size

    def state(self) -> dict[str, Any]:
        """To go on later."""
        return {
            "size": self.frontier.size,
            "roots": [root.hex() for root in self.frontier.roots],
            "trusted": sorted(self.trusted),
            "heads": self.heads,
            "last_good": self.last_good,
            "wrong_roots": self.wrong_roots,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], announced: Mapping[str, int]) -> "Spine":
        """As it was."""
        spine = cls(state["trusted"], announced, Frontier(state["size"], map(bytes.fromhex, state["roots"])))
        spine.heads, spine.last_good, spine.wrong_roots = state["heads"], state["last_good"], state["wrong_roots"]
        return spine


def _levels(count: int) -> list[int]:
    """The levels of the perfect subtrees that make up so many leaves, the highest first."""
    return [level for level in reversed(range(count.bit_length())) if count >> level & 1]

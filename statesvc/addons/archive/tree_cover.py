"""The rest of the tree: what of a signed head's tree is not in a file, as the fewest roots, so that the file alone proves itself. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

import orjson

from events.merkle.compact_range import CompactRange
from events.merkle.node import LeafRange, Node

CHECKPOINT: Final = b"statesvc.checkpoint"
TREE: Final = b"statesvc.tree"


class IndexRanges:
    """The indexes of a file as they come, gathered to ranges without a hole."""

    def __init__(self) -> None:
        self.ranges: list[LeafRange] = []

    def add(self, indexes: Iterable[int]) -> None:
        """Add indexes, ascending."""
        for index in indexes:
            if self.ranges and self.ranges[-1].end == index:
                self.ranges[-1] = LeafRange(self.ranges[-1].begin, index + 1)
            else:
                self.ranges.append(LeafRange(index, index + 1))

    def outside(self, size: int) -> list[LeafRange]:
        """Return what of a tree of this size is not here."""
        ends = [0, *(run.end for run in self.ranges)]
        begins = [*(run.begin for run in self.ranges), size]
        return [
            LeafRange(end, begin) for end, begin in zip(ends, begins, strict=True) if end < begin
        ]


@dataclass(frozen=True, slots=True)
class TreeCover:
    """The tree of `size` leaves around a file: perfect subtrees and their roots, from left to right."""

    size: int
    roots: Mapping[Node, bytes]

    def metadata(self) -> bytes:
        return orjson.dumps(
            {
                "size": self.size,
                "nodes": [
                    [node.level, node.position, root.hex()] for node, root in self.roots.items()
                ],
            }
        )

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Parse the footer. Raises ValueError, KeyError or TypeError for what `metadata` never wrote."""
        document = orjson.loads(text)
        return cls(
            document["size"],
            {
                Node(level, position): bytes.fromhex(root)
                for level, position, root in document["nodes"]
            },
        )

    def root(self, leaves: Iterable[tuple[int, bytes]]) -> bytes:
        """Compute the root of the whole tree, with the file's leaf hashes by index, ascending.

        Raises ValueError where they do not fill it.
        """
        tree = CompactRange()
        gaps: Iterator[tuple[int, bytes]] = (
            (node.level, root) for node, root in self.roots.items()
        )
        begins = {node.position << node.level for node in self.roots}
        for index, leaf_hash in leaves:
            while tree.size < index and tree.size in begins:
                tree.append_subtree(*next(gaps))
            if tree.size != index:
                raise ValueError(f"nothing says what stands at index {tree.size}")
            tree.extend([leaf_hash])
        for level, root in gaps:
            tree.append_subtree(level, root)
        if tree.size != self.size:
            raise ValueError(f"the tree has {self.size} leaves, {tree.size} are known")
        return tree.root()

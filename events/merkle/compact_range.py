"""The right edge of a growing tree: all that is needed to append leaves and to know the root, one
hash for each 1 bit of the size.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final, NamedTuple, Self

from events.merkle.node import EMPTY_ROOT, Node, node_hash

# Stride of the retained levels of inner nodes: the roots of 256 leaves, of 65,536, and so on. The
# others are made from them.
STRIDE: Final = 8


class Subtree(NamedTuple):
    """A node that is complete, and so never changes again."""

    node: Node
    hash: bytes


class CompactRange:
    """A tree of `size` leaves, by the roots of the perfect subtrees that make it
    up, from left to right.
    """

    __slots__ = ("_roots", "size")

    def __init__(self, size: int = 0, roots: Iterable[bytes] = ()) -> None:
        self.size = size
        self._roots = list(roots)
        # a range that was read incompletely would give a wrong root, not an error
        if len(self._roots) != size.bit_count():
            raise ValueError(
                f"a tree of {size} leaves has {size.bit_count()} perfect subtrees, not"
                f" {len(self._roots)}"
            )

    @property
    def roots(self) -> tuple[bytes, ...]:
        return tuple(self._roots)

    def copy(self) -> Self:
        return type(self)(self.size, self._roots)

    def extend(self, leaf_hashes: Iterable[bytes]) -> list[Subtree]:
        """Append leaves. Return the subtrees of retained levels that this completed."""
        completed: list[Subtree] = []
        roots, size = self._roots, self.size
        for leaf_hash in leaf_hashes:
            current, level, rest = leaf_hash, 0, size
            # as in a binary counter: each 1 bit is a perfect subtree, and a carry joins two of them
            while rest & 1:
                # `node_hash`, inlined: this runs for each leaf of the log
                current = sha256(b"\x01" + roots.pop() + current).digest()
                level += 1
                rest >>= 1
                if level % STRIDE == 0:
                    completed.append(Subtree(Node(level, rest), current))
            roots.append(current)
            size += 1
        self.size = size
        return completed

    def append_subtree(self, level: int, root: bytes) -> None:
        """Append a perfect subtree at once. Raises ValueError where it would not be aligned."""
        # an unaligned subtree is a node of no tree of RFC 6962
        if self.size % (1 << level):
            raise ValueError(f"after {self.size} leaves no subtree of level {level} begins")
        rest = self.size >> level
        self.size += 1 << level
        while rest & 1:
            root = node_hash(self._roots.pop(), root)
            rest >>= 1
        self._roots.append(root)

    def root(self) -> bytes:
        if not self._roots:
            return EMPTY_ROOT
        *rest, root = self._roots
        # from the right: RFC 6962 splits at the largest power of two, so the left side is always
        # whole
        for left in reversed(rest):
            root = node_hash(left, root)
        return root

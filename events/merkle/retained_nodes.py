"""Retained hashes, and how any node is computed from them: all leaf hashes, and the inner nodes
of every eighth level.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from events.merkle.compact_range import STRIDE, CompactRange
from events.merkle.node import EMPTY_ROOT, LeafRange, Node, node_hash


class RetainedRange(NamedTuple):
    """Retained hashes of a level, from `begin` up to but not including `end`.

    At most 256 for a node.
    """

    level: int
    begin: int
    end: int


class MissingHashError(LookupError):
    """A hash that should be retained is absent."""

    def __init__(self, node: Node) -> None:
        super().__init__(f"the tree lacks its hash at level {node.level}, position {node.position}")
        self.node = node


def retained_ranges(ranges: Iterable[LeafRange]) -> list[RetainedRange]:
    """Return the ranges to read for the roots of `ranges`: few, each once."""
    return list(dict.fromkeys(_retained_range(node) for each in ranges for node in each.nodes()))


def range_roots(ranges: Iterable[LeafRange], retained: Mapping[Node, bytes]) -> list[bytes]:
    """Compute the root over the leaves of each range; a node that several need is computed once.

    Raises MissingHashError.
    """
    known = dict(retained)
    return [_root([_hash(node, known) for node in each.nodes()]) for each in ranges]


def _root(nodes: Sequence[bytes]) -> bytes:
    if not nodes:
        return EMPTY_ROOT
    *rest, root = nodes
    for left in reversed(rest):
        root = node_hash(left, root)
    return root


def compact_range_of(size: int, retained: Mapping[Node, bytes]) -> CompactRange:
    """Build the right edge of a tree of `size` leaves. Raises MissingHashError.

    `retained` holds the nodes of `retained_ranges([LeafRange(0, size)])`.
    """
    known = dict(retained)
    return CompactRange(size, [_hash(node, known) for node in LeafRange(0, size).nodes()])


def leaves_from(begin: int, leaf_hashes: Sequence[bytes]) -> Iterator[tuple[Node, bytes]]:
    """Return leaf hashes that stand in a row, by their nodes."""
    return ((Node(0, begin + place), leaf_hash) for place, leaf_hash in enumerate(leaf_hashes))


def _retained_range(node: Node) -> RetainedRange:
    above = node.level % STRIDE
    begin = node.position << above
    return RetainedRange(node.level - above, begin, begin + (1 << above))


def _hash(node: Node, known: dict[Node, bytes]) -> bytes:
    """Compute the hash of a node, and those below it that are missing: at most as deep
    as levels are left out.
    """
    found = known.get(node)
    if found is None:
        level, position = node
        # a retained level is not made from the one below: its absence is a loss
        if level % STRIDE == 0:
            raise MissingHashError(node)
        found = node_hash(
            _hash(Node(level - 1, 2 * position), known),
            _hash(Node(level - 1, 2 * position + 1), known),
        )
        # a node that several ranges need is computed once
        known[node] = found
    return found

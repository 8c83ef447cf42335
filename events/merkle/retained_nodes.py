"""Which hashes are kept, and how any node is made of them: all leaf hashes, and the inner nodes of every eighth level."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from events.merkle.compact_range import STRIDE, Frontier
from events.merkle.hashing import EMPTY_ROOT, node_hash
from events.merkle.node import Node, Range


class KeptRange(NamedTuple):
    """Kept hashes of one level, from position `begin` up to but not including `end`; 256 at most for one node."""

    level: int
    begin: int
    end: int


class MissingHashError(LookupError):
    """A hash that should be kept is not there."""

    def __init__(self, node: Node) -> None:
        super().__init__(f"the tree lacks its hash at level {node.level}, position {node.position}")
        self.node = node


def kept_ranges(ranges: Iterable[Range]) -> list[KeptRange]:
    """What has to be read to know the roots of `ranges`: a few ranges, the same ones once."""
    return list(dict.fromkeys(_kept_range(node) for each in ranges for node in each.nodes()))


def range_root(asked: Range, kept: Mapping[Node, bytes]) -> bytes:
    """The root over the leaves of a range. Raises MissingHashError."""
    roots = [_hash(node, kept) for node in asked.nodes()]
    if not roots:
        return EMPTY_ROOT
    *rest, root = roots
    for left in reversed(rest):
        root = node_hash(left, root)
    return root


def frontier_of(size: int, kept: Mapping[Node, bytes]) -> Frontier:
    """The right edge of a tree of `size` leaves, from what `kept_ranges([Range(0, size)])` names. Raises MissingHashError."""
    return Frontier(size, [_hash(node, kept) for node in Range(0, size).nodes()])


def leaves_from(begin: int, leaf_hashes: Sequence[bytes]) -> Iterator[tuple[Node, bytes]]:
    """Leaf hashes that stand in a row, by their nodes."""
    return ((Node(0, begin + place), leaf_hash) for place, leaf_hash in enumerate(leaf_hashes))


def _kept_range(node: Node) -> KeptRange:
    above = node.level % STRIDE
    begin = node.position << above
    return KeptRange(node.level - above, begin, begin + (1 << above))


def _hash(node: Node, kept: Mapping[Node, bytes]) -> bytes:
    level, begin, end = _kept_range(node)
    try:
        row = [kept[Node(level, position)] for position in range(begin, end)]
    except KeyError as error:
        raise MissingHashError(error.args[0]) from None
    while len(row) > 1:
        row = [node_hash(left, right) for left, right in zip(row[::2], row[1::2], strict=True)]
    return row[0]

"""Inclusion and consistency proofs: their subtrees and their verification.

As in RFC 9162, sections 2.1.3 and 2.1.4. A proof is made from ranges of leaves, so that the keeper
of the hashes decides how to find their roots.
"""

from collections.abc import Sequence

from events.merkle.node import EMPTY_ROOT, LeafRange, node_hash


def inclusion_ranges(index: int, size: int) -> list[LeafRange]:
    """Return the subtrees that prove that the tree of `size` leaves contains the leaf `index`.

    The lowest first.
    """
    if not 0 <= index < size:
        raise ValueError(f"a tree of {size} leaves has no leaf {index}")
    ranges = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            ranges.append(LeafRange(middle, end))
            end = middle
        else:
            ranges.append(LeafRange(begin, middle))
            begin = middle
    return ranges[::-1]


def consistency_ranges(first: int, second: int) -> list[LeafRange]:
    """Return the subtrees that prove that the tree of `second` leaves extends that of `first`.

    None from the empty tree.
    """
    if not 0 <= first <= second:
        raise ValueError(f"a tree of {first} leaves is no beginning of one of {second}")
    # the empty tree is the beginning of any, and every tree its own
    if first in {0, second}:
        return []
    ranges = []
    begin, end = 0, second
    while first < end:
        middle = begin + _split(end - begin)
        if first <= middle:
            ranges.append(LeafRange(middle, end))
            end = middle
        else:
            ranges.append(LeafRange(begin, middle))
            begin = middle
    # the verifier knows the root of `first` itself
    if begin:
        ranges.append(LeafRange(begin, end))
    return ranges[::-1]


def verify_inclusion(
    leaf_hash: bytes, *, index: int, size: int, path: Sequence[bytes], root: bytes
) -> bool:
    """Return whether `path` proves that `leaf_hash` is the leaf `index` of the tree of `size`
    leaves with this root.
    """
    if not 0 <= index < size:
        return False
    here, last, found = index, size - 1, leaf_hash
    for sibling in path:
        if last == 0:
            return False
        if here & 1 or here == last:
            found = node_hash(sibling, found)
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        here, last = here >> 1, last >> 1
    return last == 0 and found == root


def verify_consistency(
    *, first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes
) -> bool:
    if not 0 <= first <= second:
        return False
    if first == second:
        return not path and first_root == second_root
    if first == 0:
        return not path and first_root == EMPTY_ROOT
    if not path:
        return False
    start, *rest = path if first & (first - 1) else (first_root, *path)
    here, last = first - 1, second - 1
    while here & 1:
        here, last = here >> 1, last >> 1
    of_first = of_second = start
    for sibling in rest:
        if last == 0:
            return False
        if here & 1 or here == last:
            of_first, of_second = node_hash(sibling, of_first), node_hash(sibling, of_second)
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            of_second = node_hash(of_second, sibling)
        here, last = here >> 1, last >> 1
    return last == 0 and of_first == first_root and of_second == second_root


def _split(count: int) -> int:
    """Return the largest power of two below `count`, which is how many leaves stand on the left."""
    return 1 << (count - 1).bit_length() - 1

"""Perfect subtrees by level and position.

The node at `level` and `position` is the root of the `1 << level` leaves from `position << level`.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final, NamedTuple

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Compute `SHA-256(0x01 + left + right)`."""
    # RFC 6962: leaves are hashed after 0x00, so that no inner node can be shown as a leaf
    return sha256(b"\x01" + left + right).digest()


class Node(NamedTuple):
    """A perfect subtree; at level 0 a leaf."""

    level: int
    position: int


class LeafRange(NamedTuple):
    """The leaves from `begin` up to but not including `end`.

    Those of proofs begin where a perfect subtree of their size does.
    """

    begin: int
    end: int

    def nodes(self) -> Iterator[Node]:
        """Yield the fewest perfect subtrees that cover the range, from left to right."""
        begin = self.begin
        while begin < self.end:
            level = (self.end - begin).bit_length() - 1
            # 0 is aligned to every level, but has no lowest bit that says so
            if begin:
                level = min(level, (begin & -begin).bit_length() - 1)
            yield Node(level, begin >> level)
            begin += 1 << level

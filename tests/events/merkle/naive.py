"""The tree as RFC 6962 section 2.1 defines it, word for word, over all leaves: slow, obvious, and
written apart from ours.
"""

import hashlib
from collections.abc import Sequence


def leaf_hash(entry: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + entry).digest()


def mth(leaves: Sequence[bytes]) -> bytes:
    """Compute the Merkle Tree Hash of leaf hashes."""
    n = len(leaves)
    if n == 0:
        return hashlib.sha256(b"").digest()
    if n == 1:
        return leaves[0]
    k = _k(n)
    return hashlib.sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def path(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    """Compute PATH(m, D[n])."""
    n = len(leaves)
    if n == 1:
        return []
    k = _k(n)
    if m < k:
        return [*path(m, leaves[:k]), mth(leaves[k:])]
    return [*path(m - k, leaves[k:]), mth(leaves[:k])]


def proof(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    """Compute PROOF(m, D[n])."""
    return _subproof(m, leaves, known=True)


def _subproof(m: int, leaves: Sequence[bytes], *, known: bool) -> list[bytes]:
    n = len(leaves)
    if m == n:
        return [] if known else [mth(leaves)]
    k = _k(n)
    if m <= k:
        return [*_subproof(m, leaves[:k], known=known), mth(leaves[k:])]
    return [*_subproof(m - k, leaves[k:], known=False), mth(leaves[:k])]


def _k(n: int) -> int:
    """Return the largest power of two smaller than n."""
    k = 1
    while k * 2 < n:
        k *= 2
    return k

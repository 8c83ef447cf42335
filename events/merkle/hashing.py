"""The two hashes of the tree. A leaf hash is `events.entry.leaf`; the prefixes keep leaves and nodes apart."""

from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """`SHA-256(0x01 + left + right)`."""
    return sha256(b"\x01" + left + right).digest()

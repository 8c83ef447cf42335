"""Sealing: AES-256-GCM in the formats of sealed columns and archives, and commitments.

Format: version byte, 8-byte key id, 12-byte nonce, ciphertext and tag. Version 1 seals the
plaintext as it is, version 2 its zlib stream (ciphertext does not compress, so that comes first).
The key id identifies the key to open with and reveals no part of it. `context` is authenticated
with it, so a sealed value moved to another row does not open.
"""

import hashlib
import os
import zlib
from collections.abc import Iterable
from typing import Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FORMAT: Final = b"\x01"
COMPRESSED: Final = b"\x02"
KEY_BYTES: Final = 32
SALT_BYTES: Final = 32
_KEY_ID_BYTES: Final = 8
_NONCE_BYTES: Final = 12
_HEADER_BYTES: Final = 1 + _KEY_ID_BYTES + _NONCE_BYTES
_COMPRESSION_LEVEL: Final = 6


class SealError(ValueError):
    """A sealed value that does not open: other key, other context, or changed bytes."""


class UnknownMasterKeyError(SealError):
    """A value that was sealed under a master key that is not there."""


class SealingKey:
    """One AES-256 key. Never printed: `repr` shows its id only."""

    __slots__ = ("_aead", "key", "key_id")

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise SealError(f"a key has {KEY_BYTES} bytes, this one has {len(key)}")
        self.key = key
        self.key_id = hashlib.sha256(b"statesvc key id\x1f" + key).digest()[:_KEY_ID_BYTES]
        self._aead = AESGCM(key)

    @classmethod
    def fresh(cls) -> Self:
        return cls(os.urandom(KEY_BYTES))

    def __repr__(self) -> str:
        return f"SealingKey({self.key_id.hex()})"

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """Seal in format 1."""
        # random, not counted: processes share keys, and could not share a counter
        nonce = os.urandom(_NONCE_BYTES)
        return FORMAT + self.key_id + nonce + self._aead.encrypt(nonce, plaintext, context)

    def seal_compressed(self, plaintext: bytes, context: bytes) -> bytes:
        """Seal in format 2: smaller, for values stored long and read seldom.

        Its length reveals how well the plaintext compresses.
        """
        nonce = os.urandom(_NONCE_BYTES)
        # the version is bound too: read as format 1 it must not open
        stream = zlib.compress(plaintext, _COMPRESSION_LEVEL)
        return (
            COMPRESSED
            + self.key_id
            + nonce
            + self._aead.encrypt(nonce, stream, COMPRESSED + context)
        )

    def sealed(self, value: bytes) -> bool:
        """Return whether the value claims to be sealed under this key."""
        return value[1 : 1 + _KEY_ID_BYTES] == self.key_id

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Return the plaintext of either format; raise `SealError` if the key, the
        context or a byte differs.
        """
        version = sealed[:1]
        if version not in {FORMAT, COMPRESSED} or len(sealed) <= _HEADER_BYTES:
            raise SealError("not a sealed value of a format that is known")
        # before decrypting, only for the message: the tag would fail as well
        if not self.sealed(sealed):
            raise SealError(
                f"sealed under key {sealed[1 : 1 + _KEY_ID_BYTES].hex()}, not under"
                f" {self.key_id.hex()}"
            )
        nonce, ciphertext = sealed[1 + _KEY_ID_BYTES : _HEADER_BYTES], sealed[_HEADER_BYTES:]
        try:
            if version == FORMAT:
                return self._aead.decrypt(nonce, ciphertext, context)
            return zlib.decompress(self._aead.decrypt(nonce, ciphertext, COMPRESSED + context))
        # no cause: the library's error says no more, and its trace would name bytes
        except InvalidTag:
            raise SealError("the sealed value was changed, or belongs to another row") from None

    def wrap(self, key: "SealingKey", context: bytes) -> bytes:
        return self.seal(key.key, context)

    def unwrap(self, sealed: bytes, context: bytes) -> "SealingKey":
        return SealingKey(self.open(sealed, context))


class MasterKeys:
    """The master keys in order: the first seals, any of them opens."""

    __slots__ = ("_by_id", "current", "keys")

    def __init__(self, keys: Iterable[bytes]) -> None:
        ring = [SealingKey(key) for key in keys]
        if not ring:
            raise SealError("no master key: set STATESVC_MASTER_KEY to base64 of 32 random bytes")
        self.current = ring[0]
        self.keys = tuple(key.key for key in ring)
        self._by_id = {key.key_id: key for key in ring}

    def wrap(self, key: SealingKey, context: bytes) -> bytes:
        return self.current.wrap(key, context)

    def unwrap(self, sealed: bytes, context: bytes) -> SealingKey:
        key_id = sealed[1 : 1 + _KEY_ID_BYTES]
        master = self._by_id.get(key_id)
        if master is None:
            raise UnknownMasterKeyError(
                f"sealed under master key {key_id.hex()}: STATESVC_MASTER_KEY does not hold it, add"
                " it after the current one"
            )
        return master.unwrap(sealed, context)

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """Seal a small secret (not a key) under the current master key."""
        return self.current.seal(plaintext, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        master = self._by_id.get(sealed[1 : 1 + _KEY_ID_BYTES])
        if master is None:
            raise UnknownMasterKeyError(
                "sealed under a master key that STATESVC_MASTER_KEY does not hold: add it there"
            )
        return master.open(sealed, context)


def salted(content: bytes, *, salt: bytes | None = None) -> bytes:
    """Return `salt + content`, to be sealed where a commitment to `content` is stored outside.

    `salt` None: a random salt.
    """
    return (os.urandom(SALT_BYTES) if salt is None else salt) + content


def commitment(salted_content: bytes) -> bytes:
    """Return SHA-256 over salt and content.

    It binds the content, and reveals no part of it once the seal is erased.
    """
    return hashlib.sha256(salted_content).digest()


def unsalted(salted_content: bytes) -> bytes:
    return salted_content[SALT_BYTES:]

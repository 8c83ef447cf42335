"""Signed tree heads: C2SP tlog-checkpoint in signed notes (C2SP signed-note) with Ed25519. Pure.

```
statesvc.example/log          the origin: the log's name; in a later epoch .../log/epoch-2
4711                          the number of entries
mZc3...=                      the root hash, base64

— statesvc.example/log x08g...   a line per signature: key name, base64 of key id and signature
— statesvc.example/log mQ2k...   the same key's cosignature (C2SP tlog-cosignature), with a time
```

A second signature, by ML-DSA-44 (FIPS 204), holds when Ed25519 no longer does. It is a cosignature
line too, kept beside the note: stamps and older releases take the note's bytes as they are.
"""

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Iterable
from datetime import datetime
from typing import Final, Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey, MLDSA44PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from events.entry.kinds import FIRST_EPOCH
from events.event import value
from events.merkle.node import HASH_BYTES

NOTE_BYTES_MAX: Final = 65_536
_ED25519: Final = b"\x01"
_COSIGNATURE: Final = b"\x04"
_MLDSA44: Final = b"\x06"
_KEY_BYTES: Final = {_ED25519: 32, _COSIGNATURE: 32, _MLDSA44: 1312}
_TIME: Final = struct.Struct(">Q")
_SIGNATURE: Final = re.compile(r"— (\S+) (\S+)")
_KEY_NAME: Final = re.compile(r"[^\s+]+")
_SIZE: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_NAME_BYTES_MAX: Final = 255
_EPOCH_MAX: Final = 999_999_999
_EPOCH: Final = re.compile(r"(.+)/epoch-([2-9]|[1-9][0-9]{1,8})")


class NoteError(ValueError):
    """A text is not a valid or validly signed checkpoint or key; the message names the fault."""


class UncheckedError(NoteError):
    """The OpenSSL here does not have the algorithm of a signature."""


@value(frozen=True, slots=True)
class VerifierKey:
    """The public half of a key, for verifiers of the log.

    `public_key` has 32 bytes (Ed25519), or 1,312 (ML-DSA-44). `is_witness`: it cosigns heads of
    logs of others.
    """

    name: str
    public_key: bytes
    is_witness: bool = False

    @property
    def kind(self) -> bytes:
        """The byte that C2SP gives to the algorithm."""
        if len(self.public_key) == _KEY_BYTES[_MLDSA44]:
            return _MLDSA44
        return _COSIGNATURE if self.is_witness else _ED25519

    @property
    def key_id(self) -> bytes:
        """Four bytes that say which key a signature is by."""
        return self._id(self.kind)

    @property
    def time_key_id(self) -> bytes:
        return self._id(_COSIGNATURE)

    def _id(self, kind: bytes) -> bytes:
        return hashlib.sha256(self.name.encode() + b"\n" + kind + self.public_key).digest()[:4]

    def __str__(self) -> str:
        """Return the key as it is handed out: `name+key id+base64`."""
        return f"{self.name}+{self.key_id.hex()}+{_base64(self.kind + self.public_key)}"

    @classmethod
    def parse(cls, text: str, *, is_witness: bool = False) -> Self:
        """Parse the output of `str`. Raises NoteError."""
        # the base64 part may hold a plus sign too
        name, _, rest = text.strip().partition("+")
        key_id, _, encoded = rest.partition("+")
        material = _unbase64(encoded, "the verifier key")
        size = _KEY_BYTES.get(material[:1])
        key = cls(name, material[1:], is_witness)
        if not _KEY_NAME.fullmatch(name) or len(material) - 1 != size or key.kind != material[:1]:
            raise NoteError(
                "a verifier key reads `name+key id+base64`, with an Ed25519 or ML-DSA-44 key (type"
                " 1 or 6; of a witness 4 or 6)"
            )
        if key.key_id.hex() != key_id:
            raise NoteError(
                "the key id of the verifier key does not fit the key: a part of it was changed or"
                " lost"
            )
        return key

    def verifies(self, signature: bytes, text: bytes) -> bool:
        """Return whether the key has signed the text. Raises UncheckedError."""
        algorithm = MLDSA44PublicKey if self.kind == _MLDSA44 else Ed25519PublicKey
        try:
            algorithm.from_public_bytes(self.public_key).verify(signature, text)
        except InvalidSignature:
            return False
        except UnsupportedAlgorithm:
            raise UncheckedError(
                "a signature by ML-DSA-44 cannot be checked here: that takes OpenSSL 3.5"
            ) from None
        return True


class NoteSigner:
    """A whole key. Never printed: `repr` shows its public half."""

    __slots__ = ("_cosigning_key", "_key", "cosigner", "verifier")

    def __init__(self, name: str, seed: bytes) -> None:
        if not _KEY_NAME.fullmatch(name):
            raise NoteError("the name of a log has neither blanks nor plus signs, and is not empty")
        # else the first epoch of this log would be taken for a later one of another
        if _EPOCH.fullmatch(name):
            raise NoteError("the name of a log does not end as the origin of an epoch does")
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = VerifierKey(
            name, self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        )
        self._cosigning_key = _cosigning_key(name, seed)
        self.cosigner = (
            VerifierKey(name, self._cosigning_key.public_key().public_bytes_raw())
            if self._cosigning_key
            else None
        )
        """The public half of its ML-DSA-44 key; None: the OpenSSL here has no ML-DSA, or the name is
        too long to be signed.
        """

    @classmethod
    def fresh(cls, name: str) -> Self:
        return cls(
            name,
            Ed25519PrivateKey.generate().private_bytes(
                Encoding.Raw, PrivateFormat.Raw, NoEncryption()
            ),
        )

    def __repr__(self) -> str:
        return f"NoteSigner({self.verifier})"

    @property
    def seed(self) -> bytes:
        """The 32 secret bytes, to be sealed."""
        return self._key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())

    def sign(self, data: bytes) -> bytes:
        return self._key.sign(data)

    def signature_line(self, text: bytes) -> str:
        return f"— {self.verifier.name} {_base64(self.verifier.key_id + self.sign(text))}\n"

    def cosignature_line(self, text: bytes, seconds: int) -> str:
        """Return this key's cosignature line, with its signing time in seconds since 1970."""
        material = (
            self.verifier.time_key_id + _TIME.pack(seconds) + self._key.sign(_timed(text, seconds))
        )
        return f"— {self.verifier.name} {_base64(material)}\n"

    def second_signature(self, head: "Checkpoint", *, at: datetime | None) -> str | None:
        """Return the line of its ML-DSA-44 key, to be kept beside the note."""
        if self._cosigning_key is None or self.cosigner is None:
            return None
        seconds = 0 if at is None else int(at.timestamp())
        name, key_id = self.cosigner.name, self.cosigner.key_id
        signature = self._cosigning_key.sign(_subtree(head, name, seconds))
        return f"— {name} {_base64(key_id + _TIME.pack(seconds) + signature)}\n"


def _cosigning_key(name: str, seed: bytes) -> MLDSA44PrivateKey | None:
    # what it signs has a byte for the length of the origin, and a later epoch lengthens that;
    # 0.1.0 took longer names
    if len(origin_of(name, _EPOCH_MAX).encode()) > _NAME_BYTES_MAX:
        return None
    # from the seed, so that sealing, rotation and retirement of one secret are those of both.
    # Whoever breaks Ed25519 learns the scalar, a hash of the seed, and not the seed
    derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"statesvc log ml-dsa-44")
    try:
        return MLDSA44PrivateKey.from_seed_bytes(derivation.derive(seed))
    except UnsupportedAlgorithm:
        return None


@value(frozen=True, slots=True)
class Checkpoint:
    origin: str
    size: int
    root: bytes

    @property
    def log(self) -> str:
        """The name of the log, in any epoch."""
        return _of_epoch(self.origin)[0]

    @property
    def epoch(self) -> int:
        return _of_epoch(self.origin)[1]

    @property
    def text(self) -> str:
        return f"{self.origin}\n{self.size}\n{_base64(self.root)}\n"

    def signed(self, signers: Iterable[NoteSigner], *, at: datetime | None = None) -> str:
        """Return the note, signed by each; with a time also for that second."""
        text = self.text.encode()
        lines = []
        for signer in signers:
            lines.append(signer.signature_line(text))
            if at is not None:
                lines.append(signer.cosignature_line(text, int(at.timestamp())))
        return self.text + "\n" + "".join(lines)


@value(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint with the known keys that have signed it.

    `signed_at`: the signing times, in seconds since 1970; None without a time.
    """

    checkpoint: Checkpoint
    signed_by: frozenset[VerifierKey]
    signed_at: int | None = None


def origin_of(log: str, epoch: int) -> str:
    """Return the origin of the heads of an epoch: for the first, the name of the log alone."""
    return log if epoch == FIRST_EPOCH else f"{log}/epoch-{epoch}"


def _of_epoch(origin: str) -> tuple[str, int]:
    found = _EPOCH.fullmatch(origin)
    return (origin, FIRST_EPOCH) if found is None else (found[1], int(found[2]))


def open_checkpoint(
    note: str | bytes, keys: Iterable[VerifierKey], *, origin: str | None = None
) -> SignedCheckpoint:
    """Read a note and check its signatures.

    Raises NoteError unless a known key has signed it, and for a wrong signature of any of them.

    Signatures by keys that are not known are passed over, as the format asks. `origin`: the name of
    the log, whatever its epoch; None: that of the note is taken.
    """
    text, signatures = _split(note)
    checkpoint = _parse(text)
    if origin is not None and checkpoint.log != origin:
        raise NoteError(f"the checkpoint is of the log {checkpoint.origin!r}, not of {origin!r}")
    trusted = list(keys)
    # by name and id, as C2SP signed-note asks: an id of four bytes alone may collide
    known = {(key.name, key.key_id): key for key in trusted}
    timing = {(key.name, key.time_key_id): key for key in trusted}
    signed_by = set()
    times = set()
    for name, material in signatures:
        if (key := known.get((name, material[:4]))) is not None:
            if key.kind == _ED25519:
                _hold(key, material[4:], text.encode())
            else:
                # a cosignature has a time, zero where none is meant
                seconds = int.from_bytes(material[4:12], "big")
                signed = (
                    _timed(text.encode(), seconds)
                    if key.kind == _COSIGNATURE
                    else _subtree(checkpoint, name, seconds)
                )
                _hold(key, material[12:], signed)
            signed_by.add(key)
        elif (key := timing.get((name, material[:4]))) is not None:
            times.add(_signed_time(key, material[4:], text.encode()))
    if not signed_by:
        raise NoteError("no known key has signed the checkpoint")
    # which of them were meant would be the reader's guess
    if len(times) > 1:
        raise NoteError("the checkpoint was signed for several times")
    return SignedCheckpoint(checkpoint, frozenset(signed_by), times.pop() if times else None)


def _hold(key: VerifierKey, signature: bytes, signed: bytes) -> None:
    if not key.verifies(signature, signed):
        raise NoteError(
            f"the signature of {key.name}+{key.key_id.hex()} does not fit the checkpoint's text"
        )


def _signed_time(key: VerifierKey, material: bytes, text: bytes) -> int:
    if len(material) <= _TIME.size:
        raise NoteError("a cosignature has a time")
    seconds: int = _TIME.unpack_from(material)[0]
    _hold(key, material[_TIME.size :], _timed(text, seconds))
    return seconds


def _timed(text: bytes, seconds: int) -> bytes:
    return f"cosignature/v1\ntime {seconds}\n".encode() + text


def cosignature(note: str, answer: str, witness: VerifierKey) -> str:
    """Return a witness's line from its answer about a note; lines by others are left out.

    Raises NoteError unless the line is valid and has a time.
    """
    # together, so that an answer which is more than lines makes another note
    open_checkpoint(note + answer, [witness])
    for name, material in _split(note + answer)[1]:
        if (name, material[:4]) == (witness.name, witness.key_id) and any(material[4:12]):
            return f"— {name} {_base64(material)}\n"
    raise NoteError("a cosignature has a time")


def second_signature_fault(
    note: str,
    line: str | None,
    *,
    trusted: Iterable[VerifierKey],
    stated: Iterable[VerifierKey],
) -> str | None:
    """Return what is wrong with the ML-DSA-44 line beside a note; None: it holds, or there is none
    and no such key is trusted.

    `stated`: the keys that are said to sign, which count where no such key is trusted.
    """
    wanted = [key for key in trusted if key.kind == _MLDSA44]
    if line is None:
        return "the head has no signature by ML-DSA-44" if wanted else None
    try:
        open_checkpoint(note + line, wanted or stated)
    except UncheckedError as error:
        # a log is no worse for what reads it
        return str(error) if wanted else None
    except NoteError as error:
        return str(error)
    return None


def _subtree(head: Checkpoint, cosigner: str, seconds: int) -> bytes:
    """Return the `cosigned_message` of tlog-cosignature: the subtree from leaf 0 on."""
    name, origin = cosigner.encode(), head.origin.encode()
    return b"".join(
        (
            b"subtree/v1\n\0",
            bytes([len(name)]) + name,
            _TIME.pack(seconds),
            bytes([len(origin)]) + origin,
            _TIME.pack(0) + _TIME.pack(head.size),
            head.root,
        )
    )


def signing_key_ids(note: str | bytes) -> frozenset[bytes]:
    """Return the ids of the keys in a note's signature lines, unverified. Raises NoteError."""
    return frozenset(material[:4] for _, material in _split(note)[1])


def read_checkpoint(note: str | bytes) -> Checkpoint:
    """Parse a note without verifying its signatures. Raises NoteError."""
    return _parse(_split(note)[0])


def _split(note: str | bytes) -> tuple[str, list[tuple[str, bytes]]]:
    """Split a note into its text, and the name and material of each signature."""
    try:
        whole = note.decode() if isinstance(note, bytes) else note
    except UnicodeDecodeError:
        raise NoteError("a note is UTF-8 text") from None
    # from the right: the text of a note may contain empty lines
    text, blank, lines = whole.rpartition("\n\n")
    if len(whole.encode()) > NOTE_BYTES_MAX or not blank or not lines.endswith("\n"):
        raise NoteError("a note is text, an empty line, and signature lines")
    signatures = []
    for line in lines[:-1].split("\n"):
        found = _SIGNATURE.fullmatch(line)
        material = _unbase64(found[2], "a signature") if found else b""
        if found is None or len(material) < 5:
            raise NoteError("a signature line reads `— name base64`")
        signatures.append((found[1], material))
    return text + "\n", signatures


def _parse(text: str) -> Checkpoint:
    origin, size, root, *_ = [*text.split("\n"), "", ""]
    if not origin or not _SIZE.fullmatch(size):
        raise NoteError("a checkpoint begins with the log's origin and its size")
    checkpoint = Checkpoint(origin, int(size), _unbase64(root, "the root hash"))
    if len(checkpoint.root) != HASH_BYTES:
        raise NoteError("the root hash has 32 bytes")
    # extension lines would be signed without anyone here having read them
    if checkpoint.text != text:
        raise NoteError("our checkpoints have three lines and no more")
    return checkpoint


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unbase64(text: str, what: str) -> bytes:
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise NoteError(f"{what} is not base64") from None
    # the last character has bits that mean nothing: there is one spelling of each value
    if _base64(data) != text:
        raise NoteError(f"{what} is not canonical base64")
    return data

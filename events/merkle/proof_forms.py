"""An entry's inclusion in two standard forms, for readers that know nothing of this service. Pure.

- C2SP tlog-proof: text with the index, the path and the signed head as it was published.
- COSE receipt (RFC 9942): a COSE_Sign1 over the root, with the path in its unprotected header.

Both prove the leaf hash of RFC 9162, SHA-256 of a zero byte and the entry's canonical JSON.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from events.event import value
from events.merkle.checkpoint import (
    Checkpoint,
    NoteError,
    NoteSigner,
    VerifierKey,
    open_checkpoint,
    read_checkpoint,
)
from events.merkle.proof import verify_inclusion

TLOG_PROOF: Final = "c2sp.org/tlog-proof@v1"
_SIGNATURE_BYTES: Final = 64
_EDDSA: Final = -8
_RFC9162_SHA256: Final = 1
_ALGORITHM, _KEY_ID, _CLAIMS, _TREE, _PROOFS = 1, 4, 15, 395, 396
_ISSUER: Final = 1
_INCLUSION: Final = -1
# Tag 18.
_SIGN1: Final = b"\xd2"

_Cbor = int | bytes | str | None | Sequence["_Cbor"] | Mapping[int, "_Cbor"]


@value(frozen=True, slots=True)
class Inclusion:
    """The place of an entry below a head, and the path to its root, the lowest sibling first."""

    index: int
    path: tuple[bytes, ...]


def tlog_proof(inclusion: Inclusion, note: str) -> str:
    hashes = "".join(f"{base64.b64encode(node).decode()}\n" for node in inclusion.path)
    return f"{TLOG_PROOF}\nindex {inclusion.index}\n{hashes}\n{note}"


def cose_receipt(inclusion: Inclusion, head: Checkpoint, signer: NoteSigner) -> bytes:
    """Return the proof below a head as a receipt, which `signer` signs."""
    signature = signer.sign(_to_be_signed(head, signer.verifier))
    return _unsigned(inclusion, head, signer.verifier) + signature


def check_tlog_proof(text: str, leaf_hash: bytes, keys: Iterable[VerifierKey]) -> None:
    """Raise NoteError unless the text proves that the leaf is in a log signed by these keys."""
    proof, blank, note = text.partition("\n\n")
    header, index, *hashes = [*proof.split("\n"), ""]
    number = index.removeprefix("index ")
    if header != TLOG_PROOF or not blank or not number.isdecimal():
        raise NoteError(f"it is no proof of the form {TLOG_PROOF}")
    inclusion = Inclusion(int(number), tuple(base64.b64decode(each) for each in hashes if each))
    # one spelling of each proof: a lenient reader would let two texts prove the same
    if text != tlog_proof(inclusion, note):
        raise NoteError("it is not spelled as the form demands")
    head = open_checkpoint(note, keys).checkpoint
    _hold(leaf_hash, inclusion, head)


def check_receipt(
    receipt: bytes,
    leaf_hash: bytes,
    inclusion: Inclusion,
    note: str,
    keys: Iterable[VerifierKey],
) -> None:
    """Raise NoteError unless the receipt proves that the leaf has this place below this head.

    It is compared with the only spelling of what it must say, so that nothing has to be parsed.
    """
    head = read_checkpoint(note)
    _hold(leaf_hash, inclusion, head)
    said, signature = receipt[:-_SIGNATURE_BYTES], receipt[-_SIGNATURE_BYTES:]
    for key in keys:
        # compared with the only spelling of what it must say, so that nothing has to be parsed
        if said == _unsigned(inclusion, head, key) and key.verifies(
            signature, _to_be_signed(head, key)
        ):
            return
    raise NoteError("no known key has signed this receipt of the entry and its head")


def _hold(leaf_hash: bytes, inclusion: Inclusion, head: Checkpoint) -> None:
    if not verify_inclusion(
        leaf_hash, index=inclusion.index, size=head.size, path=inclusion.path, root=head.root
    ):
        raise NoteError("the path does not lead from the entry to the signed root")


def _protected(head: Checkpoint, key: VerifierKey) -> bytes:
    return _cbor(
        {
            _ALGORITHM: _EDDSA,
            _KEY_ID: key.key_id,
            _CLAIMS: {_ISSUER: head.origin},
            _TREE: _RFC9162_SHA256,
        }
    )


def _to_be_signed(head: Checkpoint, key: VerifierKey) -> bytes:
    return _cbor(["Signature1", _protected(head, key), b"", head.root])


def _unsigned(inclusion: Inclusion, head: Checkpoint, key: VerifierKey) -> bytes:
    """Return a receipt up to its signature, the last member. The payload is detached."""
    proof = _cbor([head.size, inclusion.index, inclusion.path])
    members: list[_Cbor] = [
        _protected(head, key),
        {_PROOFS: {_INCLUSION: [proof]}},
        # detached: the verifier computes the root from the path, and must not read it here
        None,
        bytes(_SIGNATURE_BYTES),
    ]
    # a signature of zeros is encoded and cut off again: its length is in the head before it
    return _SIGN1 + _cbor(members)[:-_SIGNATURE_BYTES]


def _cbor(item: _Cbor) -> bytes:
    """Encode in the deterministic form of RFC 8949; the keys of a map come in its order."""
    match item:
        case None:
            return b"\xf6"
        case int():
            return _head(0, item) if item >= 0 else _head(1, -1 - item)
        case bytes():
            return _head(2, len(item)) + item
        case str():
            return _head(3, len(item.encode())) + item.encode()
        case Mapping():
            pairs = (_cbor(key) + _cbor(member) for key, member in item.items())
            return _head(5, len(item)) + b"".join(pairs)
        case _:
            return _head(4, len(item)) + b"".join(map(_cbor, item))


def _head(major: int, argument: int) -> bytes:
    if argument < 24:
        return bytes([major << 5 | argument])
    size = next(size for size in range(4) if argument < 1 << (8 << size))
    return bytes([major << 5 | 24 + size]) + argument.to_bytes(1 << size, "big")

"""Signed notes against an example of the Go implementation that the format comes
from, and against changes.
"""

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proofbundle.checkpoint import verify_cosignature

from events.merkle.checkpoint import (
    Checkpoint,
    NoteError,
    NoteSigner,
    VerifierKey,
    open_checkpoint,
    read_checkpoint,
    second_signature_fault,
)

ROOT = bytes(range(32))
SIGNER = NoteSigner("log.example/a", bytes(range(1, 33)))
OTHER = NoteSigner("log.example/a", bytes(range(2, 34)))
HEAD = Checkpoint("log.example/a", 4711, ROOT)

# of the documentation of golang.org/x/mod/sumdb/note
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_TEXT = (
    b"If you think cryptography is the answer to your problem,\nthen you don't know what your"
    b" problem is.\n"
)
GO_SIGNATURE = (
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
)


def test_keys_and_signatures_are_those_of_the_go_implementation() -> None:
    key = VerifierKey.parse(GO_KEY)
    assert str(key) == GO_KEY
    material = base64.b64decode(GO_SIGNATURE)
    assert material[:4] == key.key_id
    assert key.verifies(material[4:], GO_TEXT)
    assert not key.verifies(material[4:], GO_TEXT + b"\n")


def test_a_checkpoint_is_signed_and_opened() -> None:
    note = HEAD.signed([SIGNER])
    assert note.startswith(
        "log.example/a\n4711\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n\n— log.example/a "
    )
    opened = open_checkpoint(note, [SIGNER.verifier], origin="log.example/a")
    assert opened.checkpoint == HEAD
    assert opened.signed_by == {SIGNER.verifier}
    assert read_checkpoint(note.encode()) == HEAD


def test_a_second_signature_is_held_by_a_program_that_is_not_ours() -> None:
    at = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
    line, key = SIGNER.second_signature(HEAD, at=at), SIGNER.cosigner
    assert line is not None
    assert key is not None
    note = HEAD.signed([SIGNER], at=at) + line
    read = verify_cosignature(note, str(key))
    assert (read["ok"], read["alg"], read["tree_size"]) == (True, "ml-dsa-44", 4711)
    assert not verify_cosignature(note.replace("4711", "4712", 1), str(key))["ok"]
    assert VerifierKey.parse(str(key)) == key
    # readers that do not know the key pass over the line
    assert open_checkpoint(note, [SIGNER.verifier]).signed_by == {SIGNER.verifier}
    assert open_checkpoint(note, [SIGNER.verifier, key]).signed_by == {SIGNER.verifier, key}


def test_a_second_signature_that_is_missing_changed_or_by_another_is_found() -> None:
    note, key, other = HEAD.signed([SIGNER]), SIGNER.cosigner, OTHER.cosigner
    line = SIGNER.second_signature(HEAD, at=None)
    assert line is not None
    assert key is not None
    assert other is not None
    grown = Checkpoint(HEAD.origin, HEAD.size + 1, HEAD.root)

    def fault(line: str | None, *trusted: VerifierKey) -> str | None:
        return second_signature_fault(note, line, trusted=trusted, stated=[key])

    assert fault(line) is None
    assert fault(line, SIGNER.verifier, key) is None
    assert fault(None, SIGNER.verifier) is None
    assert fault(None, key) == "the head has no signature by ML-DSA-44"
    assert fault(line, other) == "no known key has signed the checkpoint"
    assert "does not fit" in str(fault(SIGNER.second_signature(grown, at=None)))
    assert fault("no line\n", key) == "a signature line reads `— name base64`"


def test_a_name_that_is_too_long_for_a_second_signature_has_none() -> None:
    signer = NoteSigner("包裹" * 100, bytes(32))
    head = Checkpoint(signer.verifier.name, 1, ROOT)
    assert signer.cosigner is None
    assert signer.second_signature(head, at=None) is None
    assert open_checkpoint(head.signed([signer]), [signer.verifier]).checkpoint == head


def test_a_checkpoint_says_when_it_was_signed() -> None:
    at = datetime(2026, 3, 1, 8, 0, 0, 123456, tzinfo=UTC)
    note = HEAD.signed([SIGNER, OTHER], at=at)
    assert note.count("\n— ") == 4
    for keys in ([SIGNER.verifier], [OTHER.verifier], [SIGNER.verifier, OTHER.verifier]):
        opened = open_checkpoint(note, keys)
        assert opened.signed_at == int(at.timestamp())
        assert opened.signed_by == set(keys)
    assert open_checkpoint(HEAD.signed([SIGNER]), [SIGNER.verifier]).signed_at is None


def test_a_time_that_the_key_did_not_sign_is_refused() -> None:
    at = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
    text, _, lines = HEAD.signed([SIGNER], at=at).rpartition("\n\n")
    signature, cosignature = lines.splitlines(keepends=True)
    later = HEAD.signed([SIGNER], at=at + timedelta(hours=1)).splitlines(keepends=True)[-1]
    material = bytearray(base64.b64decode(cosignature.split()[-1]))
    material[11] ^= 1
    for bad in (
        f"— {SIGNER.verifier.name} {base64.b64encode(material).decode()}\n",
        f"— {SIGNER.verifier.name} {base64.b64encode(material[:12]).decode()}\n",
        cosignature + later,
        Checkpoint("log.example/a", 4712, ROOT)
        .signed([SIGNER], at=at)
        .splitlines(keepends=True)[-1],
    ):
        with pytest.raises(NoteError):
            open_checkpoint(f"{text}\n\n{signature}{bad}", [SIGNER.verifier])


def test_a_stranger_is_not_believed() -> None:
    with pytest.raises(NoteError, match="no known key"):
        open_checkpoint(HEAD.signed([OTHER]), [SIGNER.verifier])
    with pytest.raises(NoteError, match="no known key"):
        open_checkpoint(HEAD.signed([SIGNER]), [])
    with pytest.raises(NoteError, match="of the log"):
        open_checkpoint(HEAD.signed([SIGNER]), [SIGNER.verifier], origin="log.example/b")


def test_a_wrong_signature_of_a_known_key_is_refused_beside_a_right_one() -> None:
    text, _, signatures = HEAD.signed([SIGNER]).rpartition("\n\n")
    wrong = Checkpoint("log.example/a", 1, ROOT).signed([OTHER]).rpartition("\n\n")[2]
    with pytest.raises(NoteError, match="does not fit"):
        open_checkpoint(f"{text}\n\n{signatures}{wrong}", [SIGNER.verifier, OTHER.verifier])


@given(st.data())
def test_no_flipped_bit_passes(data: st.DataObject) -> None:
    note = bytearray(HEAD.signed([SIGNER], at=datetime(2026, 3, 1, tzinfo=UTC)).encode())
    place = data.draw(st.integers(0, len(note) * 8 - 1))
    note[place // 8] ^= 1 << place % 8
    try:
        opened = open_checkpoint(bytes(note), [SIGNER.verifier], origin="log.example/a")
    except NoteError:
        return
    # the line's key is another one now, and is passed over
    assert opened.signed_at is None


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *(
            (read_checkpoint, note)
            for note in [
                "",
                "\n\n",
                "a\n1\nAAAA\n",
                "a\n1\nAAAA\n\n— a AAAAAAAA\n",
                "a\n01\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n\n— a AAAAAAAA\n",
                "a\n-1\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n\n— a AAAAAAAA\n",
                "a\n1\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\nmore\n\n— a AAAAAAAA\n",
                "a\n1\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n\n- a AAAAAAAA\n",
                "a\n1\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n\n— a AAAAAAAA",
            ]
        ),
        *(
            (VerifierKey.parse, key)
            for key in [
                "",
                "a",
                "a+00000000+AAAA",
                GO_KEY[:-4],
                GO_KEY.replace("c74f", "c74e"),
                GO_KEY.replace("Peter", "P ter"),
            ]
        ),
    ],
)
def test_what_is_no_checkpoint_or_no_key_is_refused(
    read: Callable[[str], object], text: str
) -> None:
    with pytest.raises(NoteError):
        read(text)


def test_a_signer_does_not_show_its_secret() -> None:
    signer = NoteSigner.fresh("log.example/c")
    assert signer.seed.hex() not in repr(signer)
    assert NoteSigner("log.example/c", signer.seed).verifier == signer.verifier
    with pytest.raises(NoteError, match="neither blanks"):
        NoteSigner("two words", signer.seed)

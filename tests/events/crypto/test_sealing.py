"""Keyring and sealing: a part opens under its key and context alone."""

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealError, SealingKey, commitment, salted, unsalted


@given(st.binary(), st.binary())
def test_what_is_sealed_opens_with_its_key_and_context(plaintext: bytes, context: bytes) -> None:
    key = SealingKey.fresh()
    assert key.open(key.seal(plaintext, context), context) == plaintext


@given(st.binary(min_size=1), st.integers(min_value=0), st.integers(min_value=1, max_value=255))
def test_any_changed_byte_is_noticed(plaintext: bytes, place: int, change: int) -> None:
    key = SealingKey.fresh()
    sealed = bytearray(key.seal(plaintext, b"row"))
    sealed[place % len(sealed)] ^= change
    with pytest.raises(SealError):
        key.open(bytes(sealed), b"row")


def test_a_sealed_value_does_not_open_in_another_row() -> None:
    key = SealingKey.fresh()
    with pytest.raises(SealError):
        key.open(key.seal(b"value", b"row 1"), b"row 2")


def test_an_old_master_key_still_opens_what_it_sealed() -> None:
    old, new = b"o" * 32, b"n" * 32
    key = SealingKey.fresh()
    sealed = MasterKeys([old]).wrap(key, b"x")
    assert MasterKeys([new, old]).unwrap(sealed, b"x").key == key.key
    with pytest.raises(SealError, match="STATESVC_MASTER_KEY"):
        MasterKeys([new]).unwrap(sealed, b"x")


def test_a_commitment_binds_the_content_and_hides_it() -> None:
    first, second = salted(b"EVANS"), salted(b"EVANS")
    assert unsalted(first) == b"EVANS"
    assert commitment(first) == commitment(first)
    assert commitment(first) != commitment(second)


def test_a_key_never_shows_in_its_repr() -> None:
    assert b"k".hex() * 32 not in repr(SealingKey(b"k" * 32))


ROOT = bytes(range(32))


def keyring(root: bytes = ROOT) -> Keyring:
    return Keyring(master=MasterKeys([bytes(32)]), digest_key=root, inbox=SealingKey.fresh())


def test_a_carriers_key_is_hkdf_over_the_root() -> None:
    extracted = hmac.digest(bytes(32), ROOT, "sha256")
    key = hmac.digest(extracted, b"statesvc carrier digest\x1fups\x01", "sha256")
    assert keyring().carrier_digest("ups")(b"x") == hmac.digest(key, b"x", "sha256")


def test_equal_words_of_two_carriers_have_different_digests() -> None:
    assert keyring().carrier_digest("ups")(b"x") != keyring().carrier_digest("fedex")(b"x")
    assert keyring().carrier_digest("ups")(b"x") != keyring().digest(b"x")
    assert keyring().carrier_digest("ups")(b"x") != keyring(bytes(32)).carrier_digest("ups")(b"x")

"""A time stamp is believed only if it is of this note, answers this request and is signed by the
authority that is trusted.
"""

import subprocess
from itertools import product
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from statesvc.log.timestamp import StampError, Trust, check_stamp, inquire, read_stamp
from tests.world.stamping import NOTE, Tsa, make_tsa


@pytest.fixture
def tsa(tmp_path: Path) -> Tsa:
    return make_tsa(tmp_path / "tsa")


def openssl_believes(token: bytes, tsa: Tsa, folder: Path) -> bool:
    (folder / "note").write_text(NOTE)
    (folder / "token").write_bytes(token)
    verify = ("openssl", "ts", "-verify", "-data", folder / "note", "-in", folder / "token")
    command = (*verify, "-CAfile", tsa.folder / "root.pem")
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_a_right_one_is_believed_by_us_and_by_openssl(tsa: Tsa, tmp_path: Path) -> None:
    inquiry = inquire(NOTE)
    token = tsa.reply(inquiry.request)
    stamp = check_stamp(token, NOTE, tsa.trust, nonce=inquiry.nonce)
    assert stamp.authority == "CN=Stamps & Sons"
    assert read_stamp(token, NOTE) == stamp
    assert openssl_believes(token, tsa, tmp_path)


def test_a_chain_is_read_in_any_order_and_openssl_agrees(tmp_path: Path) -> None:
    tsa = make_tsa(tmp_path / "tsa", sends_chain=True)
    inquiry = inquire(NOTE)
    token = tsa.reply(inquiry.request)
    signer, root = (
        x509.load_pem_x509_certificate((tsa.folder / name).read_bytes()).public_bytes(Encoding.DER)
        for name in ("signer.pem", "root.pem")
    )
    assert signer + root in token
    assert signer > root, "so they are not in the order of DER"
    for sent in (token, token.replace(signer + root, root + signer)):
        stamp = check_stamp(sent, NOTE, tsa.trust, nonce=inquiry.nonce)
        assert stamp.authority == "CN=Stamps & Sons"
        assert openssl_believes(sent, tsa, tmp_path)
    changed = token.replace(root, root[::-1])
    assert not openssl_believes(changed.replace(signer, signer[::-1]), tsa, tmp_path)


def test_a_stamp_of_something_else(tsa: Tsa) -> None:
    token = tsa.reply(inquire("another note").request)
    with pytest.raises(StampError, match="something else"):
        read_stamp(token, NOTE)
    with pytest.raises(StampError, match="something else"):
        check_stamp(token, NOTE, tsa.trust)


def test_an_answer_to_another_request(tsa: Tsa) -> None:
    token = tsa.reply(inquire(NOTE).request)
    with pytest.raises(StampError, match="another request"):
        check_stamp(token, NOTE, tsa.trust, nonce=inquire(NOTE).nonce)


def test_another_signer_of_the_same_name(tsa: Tsa, tmp_path: Path) -> None:
    stranger = make_tsa(tmp_path / "stranger")
    token = stranger.reply(inquire(NOTE).request)
    assert read_stamp(token, NOTE).authority == "CN=Stamps & Sons"
    with pytest.raises(StampError, match="trusted"):
        check_stamp(token, NOTE, tsa.trust)


def test_any_changed_byte_of_what_counts(tsa: Tsa) -> None:
    token = tsa.reply(inquire(NOTE).request)
    believed = check_stamp(token, NOTE, tsa.trust)
    for place, bit in product(range(len(token)), (0x01, 0x10)):
        changed = bytearray(token)
        changed[place] ^= bit
        try:
            stamp = check_stamp(bytes(changed), NOTE, tsa.trust)
        except StampError:
            continue
        # outside of what is signed; never another time
        assert stamp.stamped_at == believed.stamped_at


@pytest.mark.parametrize("token", [b"", b"garbage", b"\x30\x82\xff\xff", bytes(100_000)])
def test_garbage(tsa: Tsa, token: bytes) -> None:
    with pytest.raises(StampError):
        check_stamp(token, NOTE, tsa.trust)


def test_a_refusal(tsa: Tsa) -> None:
    with pytest.raises(StampError, match="gave no stamp"):
        read_stamp(tsa.reply(b"nonsense"), NOTE)


def test_certificates_without_a_root(tsa: Tsa) -> None:
    with pytest.raises(StampError, match="root"):
        Trust.parse((tsa.folder / "signer.pem").read_bytes())
    with pytest.raises(StampError, match="no certificates"):
        Trust.parse(b"nothing")

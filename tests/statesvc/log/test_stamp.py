"""Kinds of entries, cursors of the feed, and stamps of heads."""

import json
import subprocess
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from events.entry.kinds import EntryName
from statesvc.log.cursor import LogCursor, read_cursor
from statesvc.log.entry_kinds import ENTRY_KINDS, EntryKind, read_time
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
        assert (
            check_stamp(sent, NOTE, tsa.trust, nonce=inquiry.nonce).authority == "CN=Stamps & Sons"
        )
        assert openssl_believes(sent, tsa, tmp_path)
    changed = token.replace(root, root[::-1])
    assert not openssl_believes(changed.replace(signer, signer[::-1]), tsa, tmp_path)


def test_a_stamp_of_another_head_is_refused(tsa: Tsa) -> None:
    token = tsa.reply(inquire("another note").request)
    with pytest.raises(StampError, match="something else"):
        read_stamp(token, NOTE)


def test_an_answer_to_another_request_is_refused(tsa: Tsa) -> None:
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
def test_a_token_that_is_no_stamp_is_refused(tsa: Tsa, token: bytes) -> None:
    with pytest.raises(StampError, match="too long" if len(token) > 65_536 else "not a time"):
        check_stamp(token, NOTE, tsa.trust)


def test_an_authority_that_refuses_gives_no_stamp(tsa: Tsa) -> None:
    with pytest.raises(StampError, match="gave no stamp"):
        read_stamp(tsa.reply(b"nonsense"), NOTE)


def test_certificates_without_a_root_are_refused(tsa: Tsa) -> None:
    with pytest.raises(StampError, match="root"):
        Trust.parse((tsa.folder / "signer.pem").read_bytes())
    with pytest.raises(StampError, match="no certificates"):
        Trust.parse(b"nothing")


ROOT: Final = Path(__file__).parents[3]


def test_a_time_without_an_offset_is_none() -> None:
    assert read_time("2000-01-01T02:00:00.000001+02:00")[0] == 1
    with pytest.raises(ValueError, match="offset"):
        read_time("2000-01-01T00:00:00")


def test_the_table_has_each_kind_in_the_order_of_a_batch() -> None:
    assert [kind.name for kind in ENTRY_KINDS] == list(EntryName)


@pytest.mark.parametrize("kind", ENTRY_KINDS, ids=lambda kind: kind.name)
def test_the_table_names_modules_and_calls_that_exist(kind: EntryKind) -> None:
    assert (ROOT / kind.writer).is_file()
    assert [
        name
        for name in kind.verified
        if not (ROOT / "statesvc/addons/verify" / f"{name}.py").is_file()
    ] == []
    document = json.loads((ROOT / "clients/openapi.json").read_text("utf-8"))
    calls = {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method in methods
    }
    assert [call for call in kind.shown if call not in calls] == []


def test_the_page_of_entries_shows_the_table() -> None:
    page = (ROOT / "docs/entries.md").read_text("utf-8")
    rows = [f"| `{kind.name}` | {kind.says} | {kind.written} |" for kind in ENTRY_KINDS]
    assert "\n".join(rows) in page


@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        ("1.0", LogCursor(1, 0)),
        ("2.41", LogCursor(2, 41)),
        ("7", LogCursor(1, 7)),
        ("-1", LogCursor(1, -1)),
    ],
)
def test_a_cursor_names_epoch_and_index_and_an_index_alone_is_of_the_first_epoch(
    text: str, cursor: LogCursor
) -> None:
    assert read_cursor(text) == cursor
    assert read_cursor(str(cursor)) == cursor


@pytest.mark.parametrize(
    "text", ["", "x", "1.", ".1", "0.1", "01.1", "1.01", "1.-2", "1.1.1", " 1", "1\n", "9" * 40]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a place"):
        read_cursor(text)

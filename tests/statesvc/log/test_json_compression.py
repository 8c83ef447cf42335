"""Compression of canonical JSON: small, and bounded when it is read."""

import hashlib
from collections import defaultdict
from typing import Final

import pytest

from statesvc.log.json_compression import (
    DICTIONARY,
    compress_json,
    decompress_json,
    dictionary_path,
    frames_by_standard_library,
    frames_by_zstandard,
)
from tests.statesvc.log.json_samples import samples_by_kind

LANDED = {1: "37941bb9756802e80343f2fcbb0754d67132fb6a88eee644c0b05fe2c44d6a3a"}
"""SHA-256 of each dictionary: rows that it compressed cannot be read with another one."""
OLD = bytes.fromhex("0120408d000000057c00a005284f350147e5388f9b4ad8")
"""An entry as the first release of dictionary 1 stored it."""


@pytest.fixture(scope="module")
def samples() -> list[tuple[str, bytes]]:
    return list(samples_by_kind(7))


def test_every_entry_comes_back_byte_by_byte(samples: list[tuple[str, bytes]]) -> None:
    for _, canonical in samples:
        assert decompress_json(compress_json(canonical)) == canonical


def test_entries_take_a_third_of_their_bytes_or_less(samples: list[tuple[str, bytes]]) -> None:
    sizes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for kind, canonical in samples:
        sizes[kind].append((len(canonical), len(compress_json(canonical))))
    shares = {
        kind: sum(stored for _, stored in pairs) / sum(plain for plain, _ in pairs)
        for kind, pairs in sizes.items()
    }
    assert max(shares.values()) < 0.45
    assert shares["event"] < 0.33


def test_dictionaries_that_landed_never_change() -> None:
    assert {
        number: hashlib.sha256(dictionary_path(number).read_bytes()).hexdigest()
        for number in range(1, DICTIONARY + 1)
    } == LANDED


def test_what_was_stored_by_an_older_release_is_read() -> None:
    assert (
        decompress_json(OLD) == b'{"entry":"event","format":1,"kind":"scan","status":"in_transit"}'
    )


def test_an_action_is_stored_as_it_is() -> None:
    assert decompress_json(b'{"entry":"action"}') == b'{"entry":"action"}'


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"\x00",
        b"\xff123",
        b"\x01",
        b"\x01\x00garbage",
        compress_json(b'{"entry":"event"}')[:-1],
    ],
)
def test_what_is_no_entry_is_refused(stored: bytes) -> None:
    with pytest.raises(ValueError, match=r"decompress|dictionary"):
        decompress_json(stored)


RAW: Final = dictionary_path(DICTIONARY).read_bytes()


def test_both_libraries_write_the_same_bytes_and_read_them(
    samples: list[tuple[str, bytes]],
) -> None:
    one, other = frames_by_zstandard(RAW), frames_by_standard_library(RAW)
    for _, content in samples:
        frame = one.compress(content)
        assert other.compress(content) == frame
        assert one.decompress(frame) == other.decompress(frame) == content

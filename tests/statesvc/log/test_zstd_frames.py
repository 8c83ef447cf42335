"""Frames of Zstandard: whichever library wrote them, the other reads them."""

from collections.abc import Callable
from typing import Final

import pytest

from statesvc.log.json_compression import (
    DICTIONARY,
    ZstdFrames,
    dictionary_path,
    frames_by_standard_library,
    frames_by_zstandard,
)
from tests.statesvc.log.json_samples import JsonSamples

RAW: Final = dictionary_path(DICTIONARY).read_bytes()
OLD: Final = bytes.fromhex("20408d000000057c00a005284f350147e5388f9b4ad8")
"""An entry as the first release of dictionary 1 stored it."""

Library = Callable[[bytes], ZstdFrames]
LIBRARIES: Final = [frames_by_zstandard, frames_by_standard_library]


def test_both_libraries_write_the_same_bytes_and_read_them() -> None:
    one, other = (library(RAW) for library in LIBRARIES)
    for _, content in JsonSamples(7).by_kind():
        frame = one.compress(content)
        assert other.compress(content) == frame
        assert one.decompress(frame) == other.decompress(frame) == content


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_an_older_release_stored_is_read(library: Library) -> None:
    assert (
        library(RAW).decompress(OLD)
        == b'{"entry":"event","format":1,"kind":"scan","status":"in_transit"}'
    )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("frame", [b"", b"\x00", b"\x00garbage", b"\xff" * 20, OLD[:-1], OLD[:4]])
def test_what_is_no_frame_is_refused(library: Library, frame: bytes) -> None:
    frames = library(RAW)
    with pytest.raises(frames.errors):
        frames.decompress(frame)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_does_not_name_its_dictionary(library: Library) -> None:
    """The byte before it does, in tables."""
    frame = library(RAW).compress(b'{"entry":"event"}')
    assert frame[0] & 0b11 == 0

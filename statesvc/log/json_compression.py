"""JSON as tables store it, compressed with a dictionary of what repeats in it: entries, parts of attempts, what is known of shipments.

Stored is a byte with the number of the dictionary, then a frame of Zstandard (RFC 8878) without its magic number. What begins with `{` is
the JSON as it is: an action, which SQL writes and reads. Leaf hashes, archives, the feed and evidence know nothing of this.

A dictionary never changes and never goes, because rows that it compressed stay for years. A better one gets the next number.
"""

import threading
from functools import cache
from pathlib import Path
from typing import Final

from statesvc.log.zstd_frames import ZstdFrames, zstd_frames

DICTIONARY: Final = 1
"""The one that compresses; those before it only decompress."""
_PLAIN: Final = b"{"


def dictionary_path(number: int) -> Path:
    """Return where a dictionary is kept."""
    return Path(__file__).with_name(f"json_dictionary_{number}.zstd")


@cache
def _dictionaries() -> dict[bytes, bytes]:
    """Read all dictionaries, by the byte that stands before their frames."""
    return {
        bytes([number]): dictionary_path(number).read_bytes() for number in range(1, DICTIONARY + 1)
    }


_NUMBER: Final = bytes([DICTIONARY])


class _ThreadFrames(threading.local):
    """Frames by the number of their dictionary: no context may be used by two threads at once."""

    made: dict[bytes, ZstdFrames] | None = None


_thread: Final = _ThreadFrames()


def _frames() -> dict[bytes, ZstdFrames]:
    if _thread.made is None:
        _thread.made = {
            number: zstd_frames(dictionary) for number, dictionary in _dictionaries().items()
        }
    return _thread.made


def compress_json(document: bytes) -> bytes:
    return _NUMBER + _frames()[_NUMBER].compress(document)


def decompress_json(stored: bytes) -> bytes:
    """Decompress a document. Raises ValueError for what does not decompress."""
    first = stored[:1]
    if first == _PLAIN:
        return stored
    frames = _frames().get(first)
    if frames is None:
        raise ValueError(
            f"compressed with dictionary {first.hex()}, which this release does not have"
        )
    try:
        return frames.decompress(stored[1:])
    except frames.errors as error:
        raise ValueError(f"does not decompress: {error}") from error

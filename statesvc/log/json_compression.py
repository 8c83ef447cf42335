"""JSON as tables store it, compressed with a dictionary of what repeats in it: entries, parts of attempts, what is known of shipments.

Stored is a byte with the number of the dictionary, then a frame of Zstandard (RFC 8878) without its magic number. What begins with `{` is
the JSON as it is: an action, which SQL writes and reads. Leaf hashes, archives, the feed and evidence know nothing of this.

A dictionary never changes and never goes, because rows that it compressed stay for years. A better one gets the next number.
"""

import threading
from functools import cache
from pathlib import Path
from typing import Final

import zstandard

DICTIONARY: Final = 1
"""The one that compresses; those before it only decompress."""
_PLAIN: Final = b"{"
_LEVEL: Final = 3


def dictionary_path(number: int) -> Path:
    """Return where a dictionary is kept."""
    return Path(__file__).with_name(f"json_dictionary_{number}.zstd")


class _Contexts:
    """Contexts of Zstandard, which are used again and again."""

    def __init__(self) -> None:
        parameters = zstandard.ZstdCompressionParameters.from_level(
            _LEVEL, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=True, write_dict_id=False
        )
        self.compress = zstandard.ZstdCompressor(compression_params=parameters, dict_data=_dictionary(DICTIONARY)).compress
        self.decompress = {
            bytes([number]): zstandard.ZstdDecompressor(dict_data=_dictionary(number), format=zstandard.FORMAT_ZSTD1_MAGICLESS).decompress
            for number in range(1, DICTIONARY + 1)
        }


class _ThreadContexts(threading.local):
    """No context may be used by two threads at once."""

    made: _Contexts | None = None


@cache
def _dictionary(number: int) -> zstandard.ZstdCompressionDict:
    dictionary = zstandard.ZstdCompressionDict(dictionary_path(number).read_bytes())
    if number == DICTIONARY:
        dictionary.precompute_compress(level=_LEVEL)
    return dictionary


_thread: Final = _ThreadContexts()
_NUMBER: Final = bytes([DICTIONARY])


def _contexts() -> _Contexts:
    if _thread.made is None:
        _thread.made = _Contexts()
    return _thread.made


def compress_json(document: bytes) -> bytes:
    """Compress a document as it is stored."""
    return _NUMBER + _contexts().compress(document)


def decompress_json(stored: bytes) -> bytes:
    """Decompress a document. Raises ValueError for what does not decompress."""
    first = stored[:1]
    if first == _PLAIN:
        return stored
    decompress = _contexts().decompress.get(first)
    if decompress is None:
        raise ValueError(f"compressed with dictionary {first.hex()}, which this release does not have")
    try:
        return decompress(stored[1:])
    except (zstandard.ZstdError, MemoryError) as error:
        raise ValueError(f"does not decompress: {error}") from error

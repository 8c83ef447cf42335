"""Compression of stored JSON with a shared dictionary: entries, parts of attempts, shipment state.

The stored form is a byte with the number of the dictionary and a Zstandard frame (RFC 8878) without
its magic number. A value that begins with `{` is plain JSON: an action, which SQL writes and reads.
Leaf hashes, archives, the feed and evidence use the uncompressed form.

A dictionary never changes and is never removed, because its rows stay for years. A better
dictionary gets the next number.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from events.crypto.sealing import SALT_BYTES, SealError, SealingKey

if TYPE_CHECKING:
    from zstandard import ZstdCompressionDict

LEVEL: Final = 3
_MAGIC: Final = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class ZstdFrames:
    """Both ways with one dictionary, for one thread. `errors`: raised by `decompress`.

    `zstandard` (extra `fast`) reuses its contexts. Python's own library, from 3.14 on, and its
    backport install a tenth of its size, and make a context for each frame that they decompress,
    which is slow on virtual machines. Each reads frames of the other.
    """

    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]
    errors: tuple[type[Exception], ...]


def zstd_frames(dictionary: bytes) -> ZstdFrames:
    """Take the quicker library of those that are installed."""
    return (
        frames_by_zstandard(dictionary)
        if find_spec("zstandard")
        else frames_by_standard_library(dictionary)
    )


def frames_by_zstandard(dictionary: bytes) -> ZstdFrames:
    import zstandard  # noqa: PLC0415 - an extra

    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=True, write_dict_id=False
    )
    loaded = _loaded(dictionary)
    compressor = zstandard.ZstdCompressor(compression_params=parameters, dict_data=loaded)
    decompressor = zstandard.ZstdDecompressor(
        dict_data=loaded, format=zstandard.FORMAT_ZSTD1_MAGICLESS
    )
    return ZstdFrames(
        compressor.compress, decompressor.decompress, (zstandard.ZstdError, MemoryError)
    )


@cache
def _loaded(dictionary: bytes) -> "ZstdCompressionDict":
    """Load a dictionary once for all threads."""
    import zstandard  # noqa: PLC0415 - an extra

    loaded = zstandard.ZstdCompressionDict(dictionary)
    loaded.precompute_compress(level=LEVEL)
    return loaded


def frames_by_standard_library(dictionary: bytes) -> ZstdFrames:
    if sys.version_info >= (3, 14):
        # where `zstandard` is installed, this need not be
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415 - as above

    parameter = zstd.CompressionParameter
    options: dict[int, int] = {
        parameter.compression_level: LEVEL,
        parameter.content_size_flag: 1,
        parameter.dict_id_flag: 0,
    }
    digested = zstd.ZstdDict(dictionary).as_digested_dict
    compressor = zstd.ZstdCompressor(options=options, zstd_dict=digested)

    def compressed(document: bytes) -> bytes:
        frame: bytes = compressor.compress(document, compressor.FLUSH_FRAME)
        return frame[len(_MAGIC) :]

    def decompressed(frame: bytes) -> bytes:
        decompressor = zstd.ZstdDecompressor(zstd_dict=digested)
        document: bytes = decompressor.decompress(_MAGIC + frame)
        if not decompressor.eof:
            raise zstd.ZstdError("the frame is cut off")
        return document

    return ZstdFrames(compressed, decompressed, (zstd.ZstdError, MemoryError))


# Number of the dictionary that compresses; earlier dictionaries only decompress.
DICTIONARY: Final = 1
_PLAIN: Final = b"{"


def dictionary_path(number: int) -> Path:
    return Path(__file__).with_name(f"json_dictionary_{number}.zstd")


@cache
def _dictionaries() -> dict[bytes, bytes]:
    """Read all dictionaries, keyed by the byte before their frames."""
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
    """Decompress a document; plain JSON is returned as it is. Raises ValueError."""
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


def seal_part(key: SealingKey, salted_part: bytes, context: bytes) -> bytes:
    """Seal a part as it is stored. Its length shows how well it compresses."""
    return key.seal(salted_part[:SALT_BYTES] + compress_json(salted_part[SALT_BYTES:]), context)


def open_part(key: SealingKey, sealed: bytes, context: bytes) -> bytes:
    """Open salt and JSON, whether it was compressed or not. Raises SealError."""
    opened = key.open(sealed, context)
    try:
        return opened[:SALT_BYTES] + decompress_json(opened[SALT_BYTES:])
    except ValueError as error:
        raise SealError(f"the part {error}") from error

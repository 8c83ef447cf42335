"""Frames of Zstandard (RFC 8878) without their magic number, by either of two libraries: the same bytes, each reads what the other wrote.

`zstandard` (extra `fast`) uses its contexts again and again. What Python has from 3.14 on, and its backport for those before, takes a tenth
of the disk, and makes a context for each frame that it decompresses: it asks what the processor can do, slow on virtual machines.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zstandard import ZstdCompressionDict

LEVEL: Final = 3
_MAGIC: Final = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class ZstdFrames:
    """Both ways with one dictionary, for one thread. `errors`: what `decompress` raises."""

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
        from compression import zstd  # noqa: PLC0415 - where `zstandard` is installed, this need not be
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

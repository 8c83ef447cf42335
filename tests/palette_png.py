"""Make a PNG of a screen small: a palette of at most 256 colours instead of three bytes a pixel."""

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_RGB: Final = 2
_PALETTE: Final = 3
_COLORS: Final = 256
_ROUNDING: Final = 0xF8
"""Shades that differ less are one."""


def with_palette(png: bytes) -> bytes:
    """Return the same picture with a palette; what names times and programs is left out.

    Takes 8-bit RGB without interlacing.
    """
    chunks = list(_chunks(png))
    header = next(content for kind, content in chunks if kind == b"IHDR")
    width, height, depth, color_type, *_, interlace = struct.unpack(">IIBBBBB", header)
    if (depth, color_type, interlace) != (8, _RGB, 0):
        raise ValueError(
            f"an RGB picture is wanted: depth {depth}, color type {color_type}, interlace"
            f" {interlace}"
        )
    raw = zlib.decompress(b"".join(content for kind, content in chunks if kind == b"IDAT"))
    rows = [
        [(red, green, blue) for red, green, blue in zip(*[iter(row)] * 3, strict=True)]
        for row in _unfiltered(raw, 3 * width)
    ]
    rounded = {color: tuple(part & _ROUNDING for part in color) for row in rows for color in row}
    # of those that are one, the most frequent
    counted = Counter(color for row in rows for color in row)
    chosen: dict[tuple[int, ...], tuple[int, int, int]] = {}
    for color, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        chosen.setdefault(rounded[color], color)
    palette = list(chosen.values())[:_COLORS]
    places = {color: _nearest(chosen[rounded[color]], palette) for color in counted}
    pixels = b"".join(b"\0" + bytes(places[color] for color in row) for row in rows)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, _PALETTE, 0, 0, 0)),
        (b"PLTE", bytes(part for color in palette for part in color)),
        (b"IDAT", zlib.compress(pixels, 9)),
        (b"IEND", b""),
    ]
    return _SIGNATURE + b"".join(_chunk(*part) for part in parts)


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8 : at + 8 + length]
        at += 12 + length


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def _unfiltered(raw: bytes, length: int) -> Iterator[bytearray]:
    """Yield the rows as they are seen: each was stored as a difference to its
    neighbours (PNG, section 9).
    """
    above = bytearray(length)
    for start in range(0, len(raw), length + 1):
        kind, row = raw[start], bytearray(raw[start + 1 : start + 1 + length])
        for at in range(length if kind else 0):
            left, corner = (row[at - 3], above[at - 3]) if at > 2 else (0, 0)
            row[at] = (
                row[at]
                + (0, left, above[at], (left + above[at]) // 2, _paeth(left, above[at], corner))[
                    kind
                ]
            ) & 255
        yield row
        above = row


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))


def _nearest(color: tuple[int, int, int], palette: list[tuple[int, int, int]]) -> int:
    return min(
        range(len(palette)),
        key=lambda place: sum(
            (ours - theirs) ** 2 for ours, theirs in zip(color, palette[place], strict=True)
        ),
    )

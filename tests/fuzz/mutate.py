"""Mutations of a body: by its structure, or by its bytes alone.

The same generator in the same state gives the same bytes.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

from tests.fuzz import mutate_json, mutate_xml

BYTES_MAX: Final = 1024 * 1024

_TOKENS: Final = (
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"<",
    b">",
    b"</",
    b"/>",
    b"&",
    b"&#0;",
    b"]]>",
    b"\\u0000",
    b"\\ud800",
    b"\x00",
)


def mutated(bodies: Sequence[bytes], rng: Random) -> bytes:
    """Return a mutation of one of `bodies`, of BYTES_MAX at most."""
    body = rng.choice(bodies)
    if rng.random() < 0.75:
        body = _by_structure(body, rng)
    if rng.random() < 0.3:
        for _ in range(rng.choice((1, 1, 2, 8))):
            body = _by_bytes(body, bodies, rng)
    return body[:BYTES_MAX]


def amplified(bodies: Sequence[bytes], rng: Random, size: int) -> bytes:
    """Return one of `bodies` with a member repeated until it has about `size` bytes: what
    takes quadratic time shows.
    """
    body = rng.choice(bodies)
    try:
        large = (
            mutate_xml.amplified(body, rng, size)
            if _is_xml(body)
            else mutate_json.amplified(body, rng, size)
        )
    except ValueError:
        large = body * (size // len(body) + 1)
    return large[:BYTES_MAX]


def _is_xml(body: bytes) -> bool:
    return body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def _by_structure(body: bytes, rng: Random) -> bytes:
    mutate = mutate_xml.mutated if _is_xml(body) else mutate_json.mutated
    try:
        return mutate(body, rng)
    except ValueError:
        lines = body.split(b"\n")
        at = rng.randrange(len(lines))
        try:
            lines[at] = mutate_json.mutated(lines[at], rng)
        except ValueError:
            return body
        return b"\n".join(lines)


def _by_bytes(body: bytes, bodies: Sequence[bytes], rng: Random) -> bytes:
    start = rng.randrange(len(body) + 1)
    end = min(len(body), start + rng.choice((1, 2, 8, 64)))
    before, within, after = body[:start], body[start:end], body[end:]
    other = rng.choice(bodies)
    return rng.choice(
        (
            before,
            before + after,
            before + rng.randbytes(len(within)) + after,
            before + rng.choice(_TOKENS) + within + after,
            before + within * rng.choice((2, 100, 2000)) + after,
            before + other[rng.randrange(len(other) + 1) :],
            within + after + before,
        )
    )

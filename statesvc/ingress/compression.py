"""Compressed bodies (`Content-Encoding: gzip`).

A body is stored, compared and read decompressed. The sender may have signed either form: services
that compress sign before, RFC 9421 signs the sent bytes. Either is proof, for each determines the
other.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import hdrs, web

from statesvc.http.problem import Code, Problem

# Synonyms by RFC 9110.
CODINGS: Final = frozenset({"gzip", "x-gzip"})
ACCEPTED: Final = "gzip, identity"
_GZIP_BITS: Final = zlib.MAX_WBITS | 16
# Parts of a joined body. Senders make one; without a bound many empty parts would take long.
_MEMBERS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class ReceivedBody:
    """`content` is decompressed; `as_sent` differs if it was compressed."""

    content: bytes
    as_sent: bytes

    @property
    def signed_forms(self) -> Sequence[bytes]:
        """Forms of the body that its signature may be over."""
        return (self.content,) if self.content is self.as_sent else (self.content, self.as_sent)


def is_compressed(request: web.Request) -> bool:
    """Return whether the body is to be decompressed. Raises Problem for a coding that is not known
    here.
    """
    named = [
        name
        for header in request.headers.getall(hdrs.CONTENT_ENCODING, ())
        for name in header.lower().replace(" ", "").split(",")
    ]
    codings = [name for name in named if name not in {"", "identity"}]
    if not codings:
        return False
    if len(codings) == 1 and codings[0] in CODINGS:
        return True
    raise Problem(
        Code.UNSUPPORTED_CONTENT_ENCODING,
        "send the body as it is, or compressed once by gzip",
        headers={hdrs.ACCEPT_ENCODING: ACCEPTED},
    )


def decompressed(body: bytes, *, bytes_max: int) -> bytes | None:
    """Decompress; None beyond `bytes_max`, where it stops. Raises Problem for other than gzip."""
    content = bytearray()
    rest = body
    for _ in range(_MEMBERS_MAX):
        if not rest:
            return bytes(content)
        member = zlib.decompressobj(_GZIP_BITS)
        try:
            content += member.decompress(rest, bytes_max + 1 - len(content))
        except zlib.error:
            break
        if len(content) > bytes_max:
            return None
        if not member.eof:
            break
        rest = member.unused_data
    raise Problem(
        Code.BAD_REQUEST, "the body is not the gzip that Content-Encoding says, or it breaks off"
    )

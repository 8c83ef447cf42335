"""Reading a webhook's raw body within its bounds, and decompressing it (`Content-Encoding: gzip`).

A body over the bound is refused as soon as that is known, not when it ends. It is stored, compared
and read decompressed. The sender may have signed either form: services that compress sign before,
RFC 9421 signs the sent bytes. Either is proof, for each determines the other.
"""

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp import hdrs, web

from statesvc.http.connections.client_connection import ClientConnection
from statesvc.http.problem import Code, Problem
from statesvc.ingress.body_memory import SMALL_BYTES, MemoryBound, NoRoomError, ReservedMemory

BODY_SECONDS: Final = 10.0
_CLOSE: Final[Mapping[str, str]] = {hdrs.CONNECTION: "close"}
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


def check_head(request: web.Request, *, bytes_max: int) -> None:
    """Refuse by the head alone, without reading the body, if that is enough to know."""
    is_compressed(request)
    if (request.content_length or 0) > bytes_max:
        raise _too_large(bytes_max)


async def read_body(
    request: web.Request, *, bytes_max: int, memory: MemoryBound, overhead_bytes: int = 0
) -> tuple[ReceivedBody, ReservedMemory]:
    """Read the body; return it with its memory (and `overhead_bytes`), which the caller releases.

    Waits for memory first. `bytes_max` bounds the sent and the decompressed body.
    """
    compressed = is_compressed(request)
    # of a body in chunks nobody knows the size yet
    expected = (
        bytes_max
        if request.content_length is None and request.body_exists
        else request.content_length or 0
    )
    if compressed:
        expected += bytes_max
    is_large = expected > SMALL_BYTES
    held = ReservedMemory(memory, is_large=is_large)
    try:
        if is_large:
            await _grow(request, held, overhead_bytes + expected)
        as_sent = await _read(
            request,
            bytes_max=bytes_max,
            held=None if is_large else held,
            overhead_bytes=overhead_bytes,
        )
        content = _decompressed(as_sent, bytes_max=bytes_max) if compressed else as_sent
        held.shrink_to(overhead_bytes + len(content))
    except BaseException:
        held.release()
        raise
    return ReceivedBody(content, as_sent), held


async def _read(
    request: web.Request, *, bytes_max: int, held: ReservedMemory | None, overhead_bytes: int
) -> bytes:
    """Read the body. `held`: takes memory for the bytes as they come; None: it is taken already."""
    content = request.content
    chunks: list[bytes] = []
    taken = 0
    deadline = asyncio.get_running_loop().time() + BODY_SECONDS
    try:
        while True:
            # a body that came with its head is there already
            async with asyncio.timeout_at(deadline) if not content.is_eof() else nullcontext():
                chunk = await content.readany()
            if not chunk:
                return b"".join(chunks)
            taken += len(chunk)
            if taken > bytes_max:
                raise _too_large(bytes_max)
            if held is not None:
                deadline += await _grow(
                    request, held, len(chunk) + (0 if chunks else overhead_bytes)
                )
            chunks.append(chunk)
    except TimeoutError:
        raise Problem(
            Code.REQUEST_TIMEOUT, f"the body did not arrive within {BODY_SECONDS:g} s"
        ) from None
    except (
        aiohttp.ClientPayloadError,
        web.RequestPayloadError,
        aiohttp.http.HttpProcessingError,
        ConnectionError,
    ):
        raise Problem(Code.BAD_REQUEST, "the body broke off, or its framing is wrong") from None


async def _grow(request: web.Request, held: ReservedMemory, count: int) -> float:
    """Wait for its turn while the rest of the body stays in the network; return for how many
    seconds.
    """
    if not count or held.take(count):
        return 0.0
    connection = request.protocol
    if isinstance(connection, ClientConnection):
        connection.keep_body()
    loop = asyncio.get_running_loop()
    started = loop.time()
    try:
        await held.grow(count)
    except NoRoomError:
        raise Problem(
            Code.OVERLOADED, "too many bodies are in memory; send it again shortly", headers=_CLOSE
        ) from None
    finally:
        if isinstance(connection, ClientConnection):
            connection.take_body()
    return loop.time() - started


def _decompressed(body: bytes, *, bytes_max: int) -> bytes:
    content = decompressed(body, bytes_max=bytes_max)
    if content is None:
        raise _too_large(bytes_max)
    return content


def _too_large(bytes_max: int) -> Problem:
    return Problem(
        Code.TOO_LARGE, f"a webhook of this carrier has at most {bytes_max} bytes", headers=_CLOSE
    )


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

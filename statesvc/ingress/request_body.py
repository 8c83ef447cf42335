"""Reading a webhook's raw body within its bounds. A body over the bound is refused as soon as that is known, not when it ends."""

import asyncio
from typing import Final

import aiohttp
from aiohttp import hdrs, web

from statesvc.http.problem import Code, Problem
from statesvc.ingress.bounds import MemoryBound

BODY_SECONDS: Final = 10.0


def check_head(request: web.Request, *, bytes_max: int, memory: MemoryBound) -> None:
    """Refuses by the head alone what the body would be refused for."""
    encoding = request.headers.get(hdrs.CONTENT_ENCODING)
    if encoding is not None and encoding.strip().lower() not in {"", "identity"}:
        raise Problem(
            Code.UNSUPPORTED_CONTENT_ENCODING,
            "send the body uncompressed: signatures are checked over the bytes as sent",
            headers={hdrs.ACCEPT_ENCODING: "identity"},
        )
    length = request.content_length or 0
    if length > bytes_max:
        raise _too_large(bytes_max)
    if not memory.has_room(length):
        raise _no_room()


async def read_body(request: web.Request, *, bytes_max: int, memory: MemoryBound) -> bytes:
    """The body as sent. What is read is charged to `memory` only while the reading lasts."""
    content = request.content
    if content.is_eof():
        # it came with its head: nothing to wait for
        body = content.read_nowait()
        if len(body) > bytes_max:
            raise _too_large(bytes_max)
        return body
    taken = 0
    chunks = []
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while chunk := await content.readany():
                if taken + len(chunk) > bytes_max:
                    raise _too_large(bytes_max)
                if not memory.take(len(chunk)):
                    raise _no_room()
                taken += len(chunk)
                chunks.append(chunk)
    except TimeoutError:
        raise Problem(Code.REQUEST_TIMEOUT, f"the body did not arrive within {BODY_SECONDS:g} s") from None
    except (aiohttp.ClientPayloadError, web.RequestPayloadError, aiohttp.http.HttpProcessingError, ConnectionError):
        raise Problem(Code.BAD_REQUEST, "the body broke off, or its framing is wrong") from None
    finally:
        memory.give_back(taken)
    return b"".join(chunks)


def _too_large(bytes_max: int) -> Problem:
    return Problem(Code.TOO_LARGE, f"a webhook of this carrier has at most {bytes_max} bytes", headers={hdrs.CONNECTION: "close"})


def _no_room() -> Problem:
    return Problem(Code.OVERLOADED, "too many bodies are in memory; send it again shortly")

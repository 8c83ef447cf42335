"""Reading a webhook's raw body within its bounds. A body over the bound is refused as soon as that is known, not when it ends."""

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp import hdrs, web

from statesvc.http.problem import Code, Problem

_CHECK_SECONDS: Final = 1.0
BODY_SECONDS: Final = 10.0


class MemoryBound:
    """Bytes of bodies in memory, while they are read and until they are stored."""

    __slots__ = ("_bytes_max", "bytes_taken")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes_taken = 0

    def has_room(self, count: int) -> bool:
        """True where `count` more bytes would fit."""
        return self.bytes_taken + count <= self._bytes_max

    @property
    def is_under_pressure(self) -> bool:
        """More than half is taken."""
        return self.bytes_taken * 2 > self._bytes_max

    def take(self, count: int) -> bool:
        """Takes bytes; False (and nothing taken) where they do not fit."""
        if not self.has_room(count):
            return False
        self.bytes_taken += count
        return True

    def give_back(self, count: int) -> None:
        """Frees what was taken."""
        self.bytes_taken -= count


class DiskRoom:
    """Free bytes where the database lives, measured once a second at most. Without a path (a server elsewhere): always enough."""

    def __init__(self, path: Path | None, *, free_bytes_min: int, now: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._free_bytes_min = free_bytes_min
        self._now = now
        self._checked_at = float("-inf")
        self._enough = True

    def is_enough(self) -> bool:
        """False: a body more could fill the disk that the log needs."""
        if self._path is None:
            return True
        now = self._now()
        if now >= self._checked_at + _CHECK_SECONDS:
            self._enough = shutil.disk_usage(self._path).free >= self._free_bytes_min
            self._checked_at = now
        return self._enough


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

"""Connections to receivers: a complete head is an answer, and a name's new address is followed.

aiohttp parses a whole segment at once: a stray byte behind an answer (a `204` with a body, more
than `Content-Length` allows) undoes the answer too. Here each head is parsed by itself. Malformed
bytes behind it close the connection, and the answer stays.

A connection under steady load would outlive the resolver's answer that it was opened with, and miss
a receiver that moved. So no request is sent on an answer older than `name_seconds`.
"""

import re
from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import partial
from socket import socket
from typing import Any, Final

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler

_END_OF_HEAD: Final = re.compile(rb"\r?\n\r?\n")
_INTERIM: Final = re.compile(rb"HTTP/1\.[01] 1")
# Body announced by an answer that can have none: it may come later, and must not meet the next
# request.
_ANNOUNCES_BODY: Final = re.compile(
    rb"HTTP/1\.[01] 204\b.*\n(?:content-length:[ \t]*0*[1-9]|transfer-encoding:)",
    re.IGNORECASE | re.DOTALL,
)


class AnswerHandler(ResponseHandler):
    """A connection. It takes no further request after `lifetime_seconds`."""

    def __init__(self, loop: AbstractEventLoop, lifetime_seconds: float) -> None:
        super().__init__(loop)
        self._head: bytes | None = None
        self._ends_at = loop.time() + lifetime_seconds

    @property
    def should_close(self) -> bool:
        return super().should_close or self._loop.time() >= self._ends_at

    def set_response_params(self, **params: Any) -> None:  # noqa: ANN401 - aiohttp's own
        self._head = b""
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Pass on the data: a head first, the bytes behind it separately."""
        while self._head is not None and data:
            before = len(self._head)
            self._head += data
            # the end may have begun in the segment before
            end = _END_OF_HEAD.search(self._head, max(0, before - 3))
            if end is None:
                break
            is_interim = _INTERIM.match(self._head) is not None
            if _ANNOUNCES_BODY.match(self._head, 0, end.end()):
                self.force_close()
            head, data = data[: end.end() - before], self._head[end.end() :]
            self._head = b"" if is_interim else None
            super().data_received(head)
            if not data:
                return
        super().data_received(data)


def _connection(loop: AbstractEventLoop, lifetime_seconds: float) -> ResponseHandler:
    return AnswerHandler(loop, lifetime_seconds)


class AnswerConnector(TCPConnector):
    def __init__(
        self,
        *,
        open_socket: Callable[[tuple[Any, ...]], socket],
        keepalive_seconds: float,
        name_seconds: float,
        resolver: AbstractResolver | None = None,
    ) -> None:
        # `should_close` is read when a connection becomes idle: what it waits then, and the age of
        # the cached answer that it was opened with, count against the same bound
        cached = name_seconds / 6
        idle = min(keepalive_seconds, cached)
        super().__init__(
            limit=0,
            socket_factory=open_socket,
            keepalive_timeout=idle,
            ttl_dns_cache=cached,  # type: ignore[arg-type]
            resolver=resolver,
        )
        self._factory = partial(
            _connection, loop=self._loop, lifetime_seconds=name_seconds - cached - idle
        )

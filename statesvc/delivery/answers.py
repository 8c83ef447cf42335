"""The receiver's side of a connection: a head that came whole is an answer, whatever comes with it.

aiohttp parses what one segment holds at once: a stray byte behind an answer (a `204` with a body, more than `Content-Length` says) undoes
the answer too. Here each head is parsed by itself. What follows may be malformed: then the connection is closed, not the answer lost.
"""

import re
from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import partial
from socket import socket
from typing import Any, Final

from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler

_END_OF_HEAD: Final = re.compile(rb"\r?\n\r?\n")
_INTERIM: Final = re.compile(rb"HTTP/1\.[01] 1")
_ANNOUNCES_BODY: Final = re.compile(
    rb"HTTP/1\.[01] 204\b.*\n(?:content-length:[ \t]*0*[1-9]|transfer-encoding:)",
    re.IGNORECASE | re.DOTALL,
)
"""Body announced by an answer that can have none: it may come later, and must not meet the next request."""


class AnswerHandler(ResponseHandler):
    """One connection."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        super().__init__(loop)
        self._head: bytes | None = None

    def set_response_params(self, **params: Any) -> None:  # noqa: ANN401 - aiohttp's own
        """Await the head of the next answer."""
        self._head = b""
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Pass on what it is given; a head and what comes behind it one after the other."""
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


def _connection(loop: AbstractEventLoop) -> ResponseHandler:
    return AnswerHandler(loop)


class AnswerConnector(TCPConnector):
    """Connections of this kind."""

    def __init__(
        self, *, open_socket: Callable[[tuple[Any, ...]], socket], keepalive_seconds: float
    ) -> None:
        super().__init__(limit=0, socket_factory=open_socket, keepalive_timeout=keepalive_seconds)
        self._factory = partial(_connection, loop=self._loop)

"""A POST to a subscriber: no redirects, no refused address, no unbounded reading."""

import asyncio
import re
import socket
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from aiohttp import (
    ClientError,
    ClientHttpProxyError,
    ClientProxyConnectionError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    ThreadedResolver,
)
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import is_ip_address
from yarl import URL

from statesvc.delivery.addresses import (
    EVERY_NETWORK,
    AddressRefusedError,
    Network,
    Sockets,
    is_allowed,
    may_connect,
)
from statesvc.delivery.connection_failure import outcome_of_failure
from statesvc.delivery.outcome import (
    CONNECT_SECONDS,
    RESPONSE_BYTES_MAX,
    TOTAL_SECONDS,
    Answer,
    outcome_of,
)
from statesvc.delivery.retry_schedule import parse_retry_after
from statesvc.delivery.webhook_url import webhook_url

HEADER_CHARS_MAX: Final = 4_096
SECRET_HEADERS: Final = frozenset(
    {
        "set-cookie",
        "set-cookie2",
        "authorization",
        "proxy-authorization",
        "authentication-info",
        "proxy-authenticate",
        "www-authenticate",
    }
)
_KEEPALIVE_SECONDS: Final = 4.0
_NAME_SECONDS: Final = 60.0


class HttpSender:
    """An HTTP client for all subscribers; the caller bounds the requests in flight.

    A name is resolved again at least every `name_seconds`. `proxy`: reaches targets outside the
    allowed networks, by CONNECT.
    """

    def __init__(
        self,
        *,
        allowed: Sequence[Network] = (),
        connect_seconds: float = CONNECT_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
        name_seconds: float = _NAME_SECONDS,
        resolver: AbstractResolver | None = None,
        proxy: str | None = None,
    ) -> None:
        self._allowed = tuple(allowed)
        self._sockets = Sockets(allowed)
        self._proxy = proxy
        self._name_seconds = name_seconds
        self._resolver = resolver
        self._timeout = ClientTimeout(
            total=total_seconds, connect=connect_seconds, sock_connect=connect_seconds
        )
        self._session: ClientSession | None = None
        self._plain_session: ClientSession | None = None
        self._proxied_session: ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session, self._plain_session = (
            # a session has one factory of sockets, and plain http may reach fewer addresses than
            # https
            self._client(self._sockets.open),
            self._client(self._sockets.open_plain),
        )
        if self._proxy is not None:
            self._resolver = self._resolver or ThreadedResolver()
            # the only address that it connects to is the proxy's, which the operator named
            self._proxied_session = self._client(Sockets(EVERY_NETWORK).open)
        return self

    def _client(self, open_socket: Callable[[tuple[Any, ...]], socket.socket]) -> ClientSession:
        return ClientSession(
            # shorter than what servers keep idle connections for, so that a POST seldom meets
            # one that is being closed
            connector=AnswerConnector(
                open_socket=open_socket,
                keepalive_seconds=_KEEPALIVE_SECONDS,
                name_seconds=self._name_seconds,
                resolver=self._resolver,
            ),
            # subscribers share the session: none may set a cookie that another would get
            cookie_jar=DummyCookieJar(),
            timeout=self._timeout,
            # a small answer may unpack to gigabytes, and only its beginning is recorded
            auto_decompress=False,
            # a proxy from the environment would be a way around the check of addresses
            trust_env=False,
        )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sessions = self._session, self._plain_session, self._proxied_session
        self._session = self._plain_session = self._proxied_session = None
        for session in sessions:
            if session is not None:
                await session.close()

    async def send(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        """Post `body`. Every failure of the other side is an answer, not an exception."""
        target = webhook_url(url)
        session = self._plain_session if target.scheme == "http" else self._session
        if session is None:
            raise RuntimeError("the sender is not open: use it as `async with`")
        started, proxy, detail = time.monotonic(), None, ""
        try:
            if self._proxied_session is not None and await self._is_behind_proxy(target):
                session, proxy = self._proxied_session, self._proxy
            async with session.post(
                # a redirect leads to an address that nobody checked, and turns POST into GET
                target,
                data=body,
                headers=headers,
                allow_redirects=False,
                proxy=proxy,
            ) as response:
                beginning = await _beginning(response)
                return Answer(
                    outcome=outcome_of(response.status),
                    duration_seconds=time.monotonic() - started,
                    status_code=response.status,
                    retry_after_seconds=parse_retry_after(
                        response.headers.get("retry-after"), now=datetime.now(UTC)
                    ),
                    response=beginning,
                    headers=_recorded(response.headers.items()),
                )
        except (ClientError, OSError) as error:
            outcome = outcome_of_failure(error)
            if isinstance(error, ClientHttpProxyError):
                detail = f"the proxy answered {error.status}"
            elif isinstance(error, ClientProxyConnectionError):
                detail = "the proxy does not answer"
        return Answer(
            outcome=outcome,
            duration_seconds=time.monotonic() - started,
            response=detail.encode(),
            detail=detail,
        )

    async def _is_behind_proxy(self, target: URL) -> bool:
        """Return whether the proxy serves the target. Raises AddressRefusedError.

        An unknown name is left to the proxy, which resolves it in any case.
        """
        host, port = target.raw_host, target.port
        if target.scheme == "http" or self._resolver is None or host is None or port is None:
            return False
        if is_ip_address(host):
            addresses = [host]
        else:
            try:
                async with asyncio.timeout(self._timeout.connect):
                    found = await self._resolver.resolve(host, port, socket.AF_UNSPEC)
            except OSError:
                return True
            addresses = [each["host"] for each in found]
        if not all(may_connect(each, self._allowed) for each in addresses):
            raise AddressRefusedError
        return not all(is_allowed(each, self._allowed) for each in addresses)


def _recorded(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    recorded, left = [], HEADER_CHARS_MAX
    for name, value in headers:
        left -= len(name) + len(value)
        if left < 0:
            break
        # counted against the bound all the same: what is left out must not make room for more
        if name.lower() not in SECRET_HEADERS:
            recorded.append((name.lower(), value))
    return recorded


async def _beginning(response: ClientResponse) -> bytes:
    """Read the body up to the bound; the status counts even if the receiver then stalls.

    If there is more, the connection is closed.
    """
    parts: list[bytes] = []
    left = RESPONSE_BYTES_MAX
    try:
        while left > 0 and (part := await response.content.read(left)):
            parts.append(part)
            left -= len(part)
    except (TimeoutError, ClientError, OSError):
        response.close()
    if left == 0:
        response.close()
    return b"".join(parts)


_END_OF_HEAD: Final = re.compile(rb"\r?\n\r?\n")
_INTERIM: Final = re.compile(rb"HTTP/1\.[01] 1")
# Body announced by an answer that can have none: it may come later, and must not meet the next
# request.
_ANNOUNCES_BODY: Final = re.compile(
    rb"HTTP/1\.[01] 204\b.*\n(?:content-length:[ \t]*0*[1-9]|transfer-encoding:)",
    re.IGNORECASE | re.DOTALL,
)


class AnswerHandler(ResponseHandler):
    """A connection on which a complete head is an answer, whatever comes behind it.

    aiohttp parses a whole segment at once: a stray byte behind an answer (a `204` with a body,
    more than `Content-Length` allows) undoes the answer too. Here each head is parsed by itself;
    malformed bytes behind it close the connection, and the answer stays. It takes no further
    request after `lifetime_seconds`: under steady load it would outlive the resolver's answer that
    it was opened with, and miss a receiver that moved.
    """

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
        open_socket: Callable[[tuple[Any, ...]], socket.socket],
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

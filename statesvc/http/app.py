"""Builds the aiohttp application of a role from its routes, and serves it."""

import asyncio
import re
import socket
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from statesvc.background.waiting import set_within
from statesvc.http.connections.client_connection import ClientConnection, Sharing
from statesvc.http.connections.connection_gate import ConnectionGate
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.key_limits import KeyLimits
from statesvc.http.middleware import guarded, problems, showing_limits
from statesvc.http.operation import Route
from statesvc.http.preferences import show_preference
from statesvc.http.removed_fields import show_removed_fields
from statesvc.settings.http_settings import listen_hosts

# aiohttp's own pattern has no braces: a parcel whose number has one could be listed, but neither
# read nor erased
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
BODY_BYTES_MAX: Final = 1024 * 1024
LINGERING_SECONDS: Final = 2.0
KEEPALIVE_SECONDS: Final = 75.0
# For writing answers that are ready, when a stopping server closes its connections.
LAST_BYTES_SECONDS: Final = 2.0


def build_app(
    routes: Iterable[Route],
    *,
    keys: Keys | None,
    limits: KeyLimits | None = None,
    body_bytes_max: int = BODY_BYTES_MAX,
) -> web.Application:
    """Build the application.

    `keys` None: no call has a scope. Handlers that read their body themselves bound it themselves.
    """
    app = web.Application(middlewares=[problems], client_max_size=body_bytes_max)
    app.on_response_prepare.append(show_preference)
    app.on_response_prepare.append(show_removed_fields)
    if limits is not None:
        app.on_response_prepare.append(showing_limits(limits))
    served = list(routes)
    by_path = {
        route.path: [other for other in served if other.path == route.path] for route in served
    }
    # of two paths that fit, that with fewer parameters is meant, and takes its own methods alone:
    # `/v1/things/search`; what takes any rest of a path (`{rest:.+}`) is meant last
    for path in sorted(by_path, key=lambda path: (":" in path, path.count("{"))):
        for route in by_path[path]:
            add = (
                app.router.add_get
                if route.method == hdrs.METH_GET
                else partial(app.router.add_route, route.method)
            )
            add(_PARAMETER.sub(r"{\1:[^/]+}", path), guarded(route, keys, limits))
        own = {route.method for route in by_path[path]}
        if hdrs.METH_ANY in own:
            continue
        app.router.add_route(
            hdrs.METH_ANY,
            _PARAMETER.sub(r"{\1:[^/]+}", path),
            _refusing(sorted(own | {hdrs.METH_HEAD} if hdrs.METH_GET in own else own)),
        )
    return app


def _refusing(allowed: Sequence[str]) -> Handler:
    async def refuse(request: web.Request) -> web.StreamResponse:
        raise web.HTTPMethodNotAllowed(request.method, allowed)

    return refuse


class InFlight:
    """The requests in progress."""

    def __init__(self) -> None:
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()

    @web.middleware
    async def counted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._count += 1
        self._none.clear()
        try:
            return await handler(request)
        finally:
            self._count -= 1
            if not self._count:
                self._none.set()

    async def until_none(self, seconds: float) -> None:
        """Wait until none is left, or until the time is over."""
        await set_within(self._none, seconds)


class _Site(web.BaseSite):
    """An address with our own connection class in place of aiohttp's."""

    def __init__(
        self,
        runner: web.AppRunner,
        connect: Callable[[], ClientConnection],
        *,
        host: str,
        port: int,
    ) -> None:
        super().__init__(runner, backlog=1024)
        self._connect = connect
        self._address = (host, port)

    @property
    def name(self) -> str:
        return f"http://{self._address[0]}:{self._address[1]}"

    async def start(self) -> None:
        await super().start()
        host, port = self._address
        self._server = await asyncio.get_running_loop().create_server(
            self._connect, host, port, backlog=self._backlog
        )


class Server:
    """Serves an application on `host`, which may be several (`listen_hosts`).

    `port` 0 takes a free port; `start` returns it. `sharing`: requests that another process
    answers. `gate`: bounds of connections.
    """

    def __init__(
        self,
        app: web.Application,
        *,
        host: str,
        port: int,
        grace_seconds: float,
        sharing: Sharing | None = None,
        gate: ConnectionGate | None = None,
    ) -> None:
        self._in_flight = InFlight()
        app.middlewares.insert(0, self._in_flight.counted)
        self._runner = web.AppRunner(app, shutdown_timeout=LAST_BYTES_SECONDS)
        self._sharing = sharing
        self._gate = gate or ConnectionGate()
        self._grace_seconds = grace_seconds
        self._hosts = listen_hosts(host)
        self._port = port
        self._started = False

    async def start(self) -> int:
        """Listen; return the port."""
        await self._runner.setup()
        self._started = True
        port = self._port
        for host in self._hosts:
            site = _Site(
                self._runner, lambda: self._connection(self._sharing), host=host, port=port
            )
            await site.start()
            port = self._runner.addresses[0][1]
        return port

    async def adopt(
        self, client: socket.socket, head: bytes, *, sharing: Sharing, is_shared: bool
    ) -> None:
        """Serve a connection accepted by another process, which has read `head` of it."""
        if not self._started:
            client.close()
            return
        loop = asyncio.get_running_loop()
        _, connection = await loop.connect_accepted_socket(
            lambda: self._connection(sharing, is_shared=is_shared, is_adopted=True), client
        )
        connection.begin(head)

    def _connection(
        self, sharing: Sharing | None, *, is_shared: bool = False, is_adopted: bool = False
    ) -> ClientConnection:
        if self._runner.server is None:
            raise RuntimeError("the server has stopped")
        return ClientConnection(
            self._runner.server,
            loop=asyncio.get_running_loop(),
            gate=self._gate,
            sharing=sharing,
            is_shared=is_shared,
            is_adopted=is_adopted,
            # signatures are over the bytes as sent; a compressed body is refused instead of
            # inflated
            auto_decompress=False,
            lingering_time=LINGERING_SECONDS,
            keepalive_timeout=KEEPALIVE_SECONDS,
            access_log=None,
        )

    async def stop(self) -> None:
        """Take no new connections, let running requests end within the grace.

        Safe to call twice, and before `start`.
        """
        if not self._started:
            return
        self._started = False
        for site in list(self._runner.sites):
            await site.stop()
        # not yet the runner: from then on it drops what comes of the bodies of running requests
        await self._in_flight.until_none(self._grace_seconds)
        await self._runner.cleanup()

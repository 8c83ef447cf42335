"""The HTTP server of a role: of `ingress` and `api` it is the work itself, of the others
only the health calls.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware
from psycopg import AsyncConnection

from events.carriers import CARRIERS
from statesvc.api.personal_reads import was_recorded
from statesvc.database.pool import Connections, Pool
from statesvc.database.wakeups.wakeup import LOG
from statesvc.http.app import Server, build_app
from statesvc.http.connections.client_connection import Sharing
from statesvc.http.connections.connection_gate import (
    ConnectionGate,
    connections_allowed,
    raise_open_files,
)
from statesvc.http.health import health_routes
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.kept_keys import KeptKeys
from statesvc.http.keys.key_limits import KeyLimits
from statesvc.http.operation import Route
from statesvc.http.preferences import WARNINGS
from statesvc.http.problem import PROBLEM
from statesvc.ingress.webhooks import Webhooks, build_ingress
from statesvc.roles.runtime import Launch, Runtime, require_sound
from statesvc.roles.shutdown import Component, ShutdownTimes, run_until_stopped
from statesvc.roles.start_cache import StartCache
from statesvc.spool.spooling import Spooling, open_spool

_READING: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})

log = structlog.get_logger()


def api_keys(launch: Launch, pool: Connections, *, kept: KeptKeys | None = None) -> Keys:
    bootstrap = launch.settings.keys.bootstrap_key
    return Keys(pool, bootstrap_key=bootstrap.get_secret_value() if bootstrap else None, kept=kept)


@asynccontextmanager
async def open_ingress(
    launch: Launch, base: Runtime, pool: Pool, *, keys: Keys
) -> AsyncIterator[Webhooks]:
    """Open the webhook handler, until all acknowledged messages are stored."""
    settings = launch.settings
    cache = base.cache
    spooling = None
    if cache is not None and settings.spool.url is not None:
        spooling = Spooling(
            await open_spool(settings.spool.url, settings.spool),
            clock=cache.clock,
            dsn=base.dsns.listen,
            pool=pool,
            waker=base.waker,
            check=partial(_check_late_database, cache),
        )
    ingress = build_ingress(
        settings,
        carriers=CARRIERS,
        pool=pool,
        keyring=base.keyring,
        keys=keys,
        waker=base.waker,
        telemetry=base.telemetry,
        local_data=settings.database.data_dir if settings.database.database_url is None else None,
        process=launch.worker_id,
        spooling=spooling,
        refused=base.refusals.count,
    )
    if cache is not None and spooling is not None:
        base.readiness.spare("database", spooling.spool.refusal)
        spooling.observe(base.telemetry)
        breaker = spooling.breaker
        cache.keys.is_away = lambda: not breaker.is_closed
        if cache.keyring is not None:
            breaker.failed(asyncio.get_running_loop().time())
        spooling.start()
        writer = cache.writer(pool, base.keyring)
        writer.start()
    # before the server listens: the first request must find somebody who stores it
    await ingress.group_commit.start()
    ingress.ack_counts.start()
    base.heartbeat.report_ingest(ingress.report)
    base.readiness.watch("disk", ingress.disk.refusal)
    try:
        yield ingress
    finally:
        await ingress.group_commit.stop(
            grace_seconds=0 if base.signals.aborting.is_set() else settings.http.grace_seconds
        )
        await ingress.ack_counts.close()
        if spooling is not None:
            await writer.close()
            await spooling.close()


async def _check_late_database(cache: StartCache, connection: AsyncConnection[Any]) -> None:
    """Check the database as the start does."""
    await require_sound(connection)
    await cache.check(connection)


async def serve(
    launch: Launch,
    base: Runtime,
    *,
    keys: Keys,
    routes: Sequence[Route] | None = None,
    limits: KeyLimits | None = None,
    sharing: Sharing | None = None,
    middlewares: Sequence[Middleware] = (),
) -> Server:
    """Listen, with livez and readyz alone unless there are `routes`."""
    calls = health_routes(base.readiness) if routes is None else routes
    http = launch.settings.http
    gate = ConnectionGate(
        connections_max=connections_allowed(http.connections_max, raise_open_files()),
        per_address_max=http.connections_per_address_max,
        proxies=launch.settings.ingress.trusted_proxies,
        head_seconds=http.head_seconds,
        refused=base.refusals.count,
    )
    app = build_app(calls, keys=keys, limits=limits)
    app.middlewares.extend(middlewares)

    async def close_while_draining(_request: web.Request, response: web.StreamResponse) -> None:
        # a client that keeps its connection would lose the request that it sends while
        # this process closes it
        if base.readiness.is_draining:
            response.headers[hdrs.CONNECTION] = "close"
            # the header alone asks the client; this ends the connection on our side, too
            response.force_close()

    async def wake_sealer(request: web.Request, _response: web.StreamResponse) -> None:
        # a call, and a recorded reading, may have written to the log; what a webhook says is
        # written there once a worker has read it
        if was_recorded(request) or (
            request.method not in _READING and not request.path.startswith("/v1/webhooks/")
        ):
            base.waker.wake(LOG)

    async def count(request: web.Request, response: web.StreamResponse) -> None:
        if (code := response.get(PROBLEM)) is not None:
            base.telemetry.api_problems.add(1, {"cause": code})
        elif warnings := request.get(WARNINGS):
            base.telemetry.request_warnings.add(len(warnings))

    app.on_response_prepare.extend((close_while_draining, wake_sealer, count))
    server = Server(
        app,
        host=launch.host,
        port=launch.port,
        grace_seconds=http.grace_seconds,
        sharing=sharing,
        gate=gate,
    )
    port = await server.start()
    log.info("listening", role=launch.role, host=launch.host, port=port)
    return server


def server_component(server: Server) -> Component:
    """Return a listening server as a part: when asked to stop it lets the running requests end."""
    stopping = asyncio.Event()

    async def run() -> None:
        await stopping.wait()
        await server.stop()

    return Component(name="http", run=run, stop=stopping.set)


async def run_with_health(launch: Launch, base: Runtime, parts: Sequence[Component]) -> int:
    """Run the parts of roles without calls of their own until it is asked to stop: their servers
    answer for their health alone.
    """
    keys = Keys(base.pool)
    async with AsyncExitStack() as stack:
        for role, port in launch.ports.items():
            server = await serve(replace(launch, role=role, port=port), base, keys=keys)
            stack.push_async_callback(server.stop)
        return await run_until_stopped(
            parts,
            helpers=base.helpers,
            signals=base.signals,
            drain=base.readiness.drain,
            times=ShutdownTimes(grace_seconds=launch.settings.http.grace_seconds),
        )

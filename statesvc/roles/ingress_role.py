"""The role `ingress`: takes webhooks alone, so that no reader of the API can delay an ACK.

With a socket to the `api` of its machine it owns the port of both, and hands other connections on.
"""

from contextlib import AsyncExitStack

from statesvc.http.health import health_routes
from statesvc.roles.connection_limits import ingress_limits
from statesvc.roles.http_server import api_keys, open_ingress, serve, server_component
from statesvc.roles.runtime import Launch, open_runtime
from statesvc.roles.shared_port import SharedPort, without_api
from statesvc.roles.shutdown import ShutdownTimes, run_until_stopped


async def run(launch: Launch) -> int:
    """Run until it is asked to stop; return the exit code."""
    settings = launch.settings
    http = settings.http
    async with (
        open_runtime(
            launch,
            ingress_limits(settings),
            channels=[],
            is_spooled=settings.spool.url is not None,
        ) as base,
        AsyncExitStack() as stack,
    ):
        base.telemetry.observe_pools({"ingress": base.pool})
        keys = api_keys(launch, base.pool, kept=None if base.cache is None else base.cache.keys)
        ingress = await stack.enter_async_context(open_ingress(launch, base, base.pool, keys=keys))
        shared = None if launch.socket is None else SharedPort(launch.socket, is_ingress=True)
        if shared is not None:
            base.readiness.watch("api", shared.unready)
        routes = [*ingress.routes, *health_routes(base.readiness)]
        server = await serve(
            launch,
            base,
            keys=keys,
            routes=routes,
            sharing=None if shared is None else shared.accepted,
            middlewares=() if shared is None else (without_api,),
        )
        stack.push_async_callback(server.stop)
        return await run_until_stopped(
            [server_component(server), *([] if shared is None else [shared.part(server)])],
            helpers=[*base.helpers, *ingress.group_commit.tasks],
            signals=base.signals,
            drain=base.readiness.drain,
            times=ShutdownTimes(grace_seconds=http.grace_seconds, drain_seconds=http.drain_seconds),
        )

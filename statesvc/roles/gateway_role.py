"""The role `gateway`: answers what spans cells. It has no database: it asks the cells, with the caller's key."""

from contextlib import AsyncExitStack
from typing import Final

import structlog
from aiohttp import web

from statesvc.cells.directory import DirectoryError, read_directory
from statesvc.cells.proxies import BODY_MEGABYTES_MAX
from statesvc.gateway import (
    cells_page,
    event_split,
    feed_over_cells,
    gateway_calls,
    merged_lists,
    openapi_over_cells,
    portal_of_cell,
    stream_over_cells,
    subscriptions_over_cells,
    tickets_over_cells,
)
from statesvc.gateway.cell_client import CellClient
from statesvc.gateway.stream_over_cells import StreamOverCells
from statesvc.http.app import Server, build_app
from statesvc.http.connection_gate import ConnectionGate, connections_allowed, raise_open_files
from statesvc.http.health import health_routes
from statesvc.roles.http_server import server_part
from statesvc.roles.metrics_address import serving_metrics
from statesvc.roles.runtime import Launch
from statesvc.roles.shutdown import ShutdownTimes, StopSignals, run_until_stopped
from statesvc.roles.watchdog import watchdog_pings
from statesvc.settings.carrier_settings import SettingError
from statesvc.telemetry.loop_lag import loop_lag
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.minute_log import Refusals
from statesvc.telemetry.tracing import metric_exporter, resource_of

_BODY_BYTES_MAX: Final = BODY_MEGABYTES_MAX * 1024 * 1024

log = structlog.get_logger()


class _Draining:
    """Ready until it stops: cells that are away are named in each answer, and make no other gateway better."""

    def __init__(self) -> None:
        self.is_draining = False

    def drain(self) -> None:
        self.is_draining = True

    async def failing(self) -> dict[str, str]:
        return {"process": "the process is stopping"} if self.is_draining else {}


async def run(launch: Launch) -> int:
    """Runs until it is asked to stop; returns the exit code."""
    settings = launch.settings
    if settings.cells.file is None:
        raise SettingError("STATESVC_CELLS_FILE is not set: it names the directory of cells (docs/cells.md)")
    try:
        directory = read_directory(settings.cells.file)
    except DirectoryError as error:
        raise SettingError(f"STATESVC_CELLS_FILE: {error}") from error
    signals = StopSignals()
    signals.listen()
    telemetry = Telemetry(resource=resource_of(launch.role, launch.worker_id), exporter=metric_exporter())
    draining = _Draining()
    http = settings.http
    async with AsyncExitStack() as stack:
        stack.callback(telemetry.close)
        await stack.enter_async_context(watchdog_pings())
        await stack.enter_async_context(serving_metrics(http, telemetry, role=launch.role, port=launch.port, control=None))
        lag = loop_lag(telemetry)
        lag.start()
        stack.push_async_callback(lag.close)
        cells = CellClient(directory, telemetry, answer_seconds=settings.cells.answer_seconds)
        stack.push_async_callback(cells.close)
        streams = StreamOverCells(cells, telemetry, send_seconds=settings.stream.send_seconds)
        spanning = [
            *merged_lists.routes(cells),
            *feed_over_cells.routes(cells),
            *event_split.routes(cells),
            *stream_over_cells.routes(cells, streams),
            *tickets_over_cells.routes(cells),
            *subscriptions_over_cells.routes(cells),
            *gateway_calls.spanning_routes(cells),
        ]
        routes = [
            *health_routes(draining),
            *spanning,
            *openapi_over_cells.routes(cells, spanning),
            # before the console, whose files it draws its pages with
            *portal_of_cell.routes(cells),
            *cells_page.routes(cells),
            # last: they take what no other does
            *gateway_calls.forwarding_routes(cells),
        ]
        app = build_app(routes, keys=None, body_bytes_max=_BODY_BYTES_MAX)

        async def close_while_draining(_request: web.Request, response: web.StreamResponse) -> None:
            if draining.is_draining:
                response.force_close()

        app.on_response_prepare.append(close_while_draining)

        def drain() -> None:
            # streams end now, not when the server stops: their clients come back elsewhere
            draining.drain()
            streams.stop()

        gate = ConnectionGate(
            connections_max=connections_allowed(http.connections_max, raise_open_files()),
            per_address_max=http.connections_per_address_max,
            proxies=settings.ingress.trusted_proxies,
            head_seconds=http.head_seconds,
            refused=Refusals(telemetry).count,
        )
        server = Server(app, host=launch.host, port=launch.port, grace_seconds=http.grace_seconds, gate=gate)
        port = await server.start()
        stack.push_async_callback(server.stop)
        log.info("listening", role=launch.role, host=launch.host, port=port, cells_epoch=directory.epoch)
        return await run_until_stopped(
            [server_part(server)],
            helpers=[],
            signals=signals,
            drain=drain,
            times=ShutdownTimes(grace_seconds=http.grace_seconds, drain_seconds=http.drain_seconds),
        )

"""Address of a process's metrics: one of their own, or a unix socket for the supervisor.

The address is not that of webhooks and calls, and bounds what it costs (`MetricsServer`): who may
ask for a number must not delay an ACK.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from statesvc.background.waiting import cancel_fully
from statesvc.settings.http_settings import HttpSettings
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.metrics_server import Exposition, MetricsServer, merged

ALIVE: Final = "/livez"
METRICS: Final = "/metrics"
# Time that a scrape waits for database readings; it then shows the last reading.
SAMPLE_SECONDS: Final = 2.0

log = structlog.get_logger()


class MetricsPortTakenError(RuntimeError):
    def __init__(self, host: str, port: int, why: str) -> None:
        super().__init__(
            f"metrics cannot listen on {host} port {port} ({why}): set STATESVC_METRICS_HOST or"
            " STATESVC_METRICS_PORT"
        )


class RoleMetrics:
    """The metrics of a process. `sample_first` updates readings that only a scrape takes."""

    def __init__(self, telemetry: Telemetry, *, role: str) -> None:
        self._telemetry = telemetry
        self._role = role
        self._sample: Callable[[], Awaitable[None]] | None = None
        self._sampling: asyncio.Task[None] | None = None

    def sample_first(self, sample: Callable[[], Awaitable[None]]) -> None:
        """Await the sample before each new text, as long as that takes no `SAMPLE_SECONDS`."""
        self._sample = sample

    async def make(self) -> bytes:
        if self._sample is not None:
            if self._sampling is None or self._sampling.done():
                self._sampling = asyncio.create_task(self._run(self._sample), name="metrics-sample")
            await asyncio.wait([self._sampling], timeout=SAMPLE_SECONDS)
        return self._telemetry.exposition()

    async def make_labelled(self) -> bytes:
        return merged({self._role: await self.make()})

    async def close(self) -> None:
        """End a reading in progress."""
        if self._sampling is not None:
            await cancel_fully(self._sampling)

    @staticmethod
    async def _run(sample: Callable[[], Awaitable[None]]) -> None:
        try:
            await sample()
        except Exception:
            log.warning("sample_not_read", exc_info=True)


def metrics_listener(http: HttpSettings, *, port: int) -> socket.socket:
    """Bind the address of the metrics. `port`: of the process. Raises MetricsPortTakenError.

    If the default port is taken and none was chosen, any free port will do.
    """
    if http.metrics_port is not None:
        return _bound(http.metrics_host, http.metrics_port)
    wanted = http.default_metrics_port(port)
    try:
        return _bound(http.metrics_host, wanted)
    except MetricsPortTakenError as error:
        log.warning("metrics_port_taken", host=http.metrics_host, port=wanted, why=str(error))
        return _bound(http.metrics_host, 0)


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise MetricsPortTakenError(host, port, error.strerror or "no such address") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
        listener.bind(address)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise MetricsPortTakenError(host, port, error.strerror or "no such address") from error
    return listener


def _control_listener(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.setblocking(False)
    return listener


async def _alive() -> bytes:
    return b"alive\n"


@asynccontextmanager
async def serving_metrics(
    http: HttpSettings, telemetry: Telemetry, *, role: str, port: int, control: Path | None
) -> AsyncIterator[RoleMetrics]:
    """Serve the metrics for the time of the block.

    `control`: where a supervisor asks for them, and whether this process lives.
    """
    metrics = RoleMetrics(telemetry, role=role)
    if control is not None:
        server = MetricsServer(
            _control_listener(control), {ALIVE: _alive, METRICS: Exposition(metrics.make).text}
        )
    else:
        listener = metrics_listener(http, port=port)
        log.info(
            "metrics_served", role=role, host=http.metrics_host, port=listener.getsockname()[1]
        )
        server = MetricsServer(listener, {METRICS: Exposition(metrics.make_labelled).text})
    server.start()
    try:
        yield metrics
    finally:
        await server.close()
        await metrics.close()

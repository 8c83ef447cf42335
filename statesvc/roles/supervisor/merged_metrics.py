"""`/metrics` of `statesvc up`: one address for all roles, served by the supervisor, which no webhook waits for."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from socket import socket
from typing import Final

from statesvc.roles.metrics_address import METRICS
from statesvc.roles.supervisor.child_process import ChildProcess
from statesvc.roles.supervisor.child_watch import ask
from statesvc.telemetry import gauges
from statesvc.telemetry.exposition import Exposition, merged
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.metrics_server import MetricsServer

CHILD_SECONDS: Final = 4.0
"""For a child's own text, of which its sample of the database may take half."""
SUPERVISOR: Final = "up"


@asynccontextmanager
async def serving_merged_metrics(
    listener: socket, children: Sequence[ChildProcess]
) -> AsyncIterator[None]:
    watched = {
        child.program.name: child.program.watch
        for child in children
        if child.program.watch is not None
    }
    telemetry = Telemetry()
    telemetry.observe(
        gauges.ROLE_ANSWERS,
        lambda: [(float(watch.answers), {"type": role}) for role, watch in watched.items()],
    )

    async def make() -> bytes:
        controls = {role: watch.control for role, watch in watched.items() if watch.answers}
        return merged({SUPERVISOR: telemetry.exposition(), **await _texts(controls)})

    server = MetricsServer(listener, {METRICS: Exposition(make).text})
    server.start()
    try:
        yield
    finally:
        await server.close()
        telemetry.close()


async def _texts(controls: Mapping[str, Path]) -> dict[str, bytes]:
    """Fetch the texts, by role, of those that answer in time."""
    asking = {
        role: asyncio.create_task(_text(control), name=f"metrics-{role}")
        for role, control in controls.items()
    }
    if asking:
        await asyncio.wait(asking.values())
    return {role: task.result() for role, task in asking.items()}


async def _text(control: Path) -> bytes:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(CHILD_SECONDS):
            return await ask(control, METRICS)
    return b""

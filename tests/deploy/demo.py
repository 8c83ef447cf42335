"""`statesvc up --demo`, scraped by a Prometheus of its own."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.world.ports import free_port, port_for_up
from tests.world.prometheus import Prometheus, scraping


@asynccontextmanager
async def scraped_demo(folder: Path) -> AsyncIterator[Prometheus]:
    """Run the demo for the time of the block; not awaited until it is ready."""
    port, metrics_port = port_for_up(), free_port()
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STATESVC_", "DATABASE_URL"))
    }
    with folder.joinpath("up.log").open("wb") as log:
        up = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "statesvc", "up", "--demo", "--port", str(port)),
            env={
                **environment,
                "STATESVC_DATA_DIR": str(folder / "data"),
                "STATESVC_METRICS_PORT": str(metrics_port),
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        async with scraping(folder, metrics_port) as prometheus:
            yield prometheus
    finally:
        up.terminate()
        await up.wait()

"""Two cells as they are run, each with its own database, and a real nginx in front."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from statesvc.cells.directory import CellDirectory, checked_directory, directory_text
from tests.acceptance.processes import BOOTSTRAP_KEY, Service
from tests.world.ports import free_port
from tests.world.programs import required
from tests.world.proxies import nginx_before

CELLS = ("north", "south")


@dataclass(frozen=True, slots=True)
class Cells:
    """`services`: by name of the cell. `session`: the proxy's, with a key. `file`: the directory."""

    services: dict[str, Service]
    session: aiohttp.ClientSession
    file: Path


@asynccontextmanager
async def two_cells(
    services: dict[str, Service], folder: Path, *, carriers: dict[str, str]
) -> AsyncIterator[Cells]:
    """Run the roles api, worker and sealer of each cell for the time of the block."""
    required("nginx", "nginx-light")
    async with AsyncExitStack() as stack:
        for service in services.values():
            await stack.enter_async_context(service)
        await asyncio.gather(
            *(service.start("api", "worker", "sealer") for service in services.values())
        )
        members = {name: {"urls": [service.api.url]} for name, service in services.items()}
        directory = checked_directory(
            {"epoch": 1, "default": "north", "cells": members, "carriers": carriers},
            "the test's directory",
        )
        file = folder / "cells.toml"
        file.write_text(directory_text(directory))
        yield Cells(
            services, await stack.enter_async_context(proxy_before(directory, folder)), file
        )


@asynccontextmanager
async def proxy_before(
    directory: CellDirectory, folder: Path
) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a session of an nginx before these cells, with a key."""
    port = free_port()
    headers = {"Authorization": f"Bearer {BOOTSTRAP_KEY}"}
    timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
    async with (
        nginx_before(directory, folder, port=port),
        aiohttp.ClientSession(
            f"http://127.0.0.1:{port}", headers=headers, timeout=timeout
        ) as session,
    ):
        yield session

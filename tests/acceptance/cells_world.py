"""Two cells as they are run, each with its own database, a gateway, and a real nginx in front."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from statesvc.cells.directory import CellDirectory, checked_directory, directory_text
from tests.acceptance.processes import BOOTSTRAP_KEY, Service
from tests.world.ports import free_port
from tests.world.programs import required
from tests.world.proxies import nginx_before

CELLS = ("north", "south")


@dataclass
class Cells:
    """`url`: of the proxy. `services`: by name of the cell."""

    url: str
    services: dict[str, Service]
    gateway: Service
    session: aiohttp.ClientSession
    file: Path


@asynccontextmanager
async def two_cells(services: dict[str, Service], folder: Path, *, carriers: dict[str, str]) -> AsyncIterator[Cells]:
    """Running for the time of the block: of each cell the roles api, worker and sealer."""
    required("nginx", "nginx-light")
    async with AsyncExitStack() as stack:
        for service in services.values():
            await stack.enter_async_context(service)
        await asyncio.gather(*(service.start("api", "worker", "sealer") for service in services.values()))
        known = {
            "epoch": 1,
            "default": "north",
            "cells": {name: {"urls": [service.api.url]} for name, service in services.items()},
            "carriers": carriers,
        }
        front = await stack.enter_async_context(gateway_and_proxy(known, folder))
        yield Cells(front.url, services, front.gateway, front.session, front.file)


@dataclass(frozen=True, slots=True)
class Front:
    """What stands before cells. `session`: the proxy's, with a key. `file`: the directory."""

    gateway: Service
    session: aiohttp.ClientSession
    directory: CellDirectory
    file: Path
    url: str


@asynccontextmanager
async def gateway_and_proxy(known: Mapping[str, Any], folder: Path) -> AsyncIterator[Front]:
    """A gateway and an nginx before the cells of a directory (without its gateway), for the time of the block."""
    gateway_port, port = free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    directory = checked_directory({**known, "gateway": [f"http://127.0.0.1:{gateway_port}"]}, "the test's directory")
    file = folder / "cells.toml"
    file.write_text(directory_text(directory))
    settings = {"STATESVC_CELLS_FILE": str(file), "STATESVC_CELLS_ANSWER_SECONDS": "20"}
    headers = {"Authorization": f"Bearer {BOOTSTRAP_KEY}"}
    timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(Service(service_dsn="", owner_dsn="", folder=folder, settings=settings, forks=True))
        await gateway.ready(await gateway.spawn("gateway", port=gateway_port))
        await stack.enter_async_context(nginx_before(directory, folder, port=port))
        session = await stack.enter_async_context(aiohttp.ClientSession(url, headers=headers, timeout=timeout))
        await _until_ready(session)
        yield Front(gateway, session, directory, file, url)


async def _until_ready(session: aiohttp.ClientSession) -> None:
    """Returns once the gateway answers through the proxy."""
    async with asyncio.timeout(30):
        while True:
            try:
                async with session.get("/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)

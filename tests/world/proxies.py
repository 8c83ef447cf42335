"""A real nginx and a real Envoy, with the configurations of our pages."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.world.programs import required, required_envoy


@asynccontextmanager
async def nginx_with(
    servers: str, folder: Path, *, port: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    """With the contents of `http { }`; it listens on `port`."""
    nginx = required("nginx", "nginx-light")
    configuration = folder / "nginx.conf"
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # `user`: its worker must write large bodies into the folder; nginx that was not
    # started by root ignores it
    configuration.write_text(
        f"user root;\ndaemon off;\npid {folder}/nginx.pid;\nworker_processes 1;\nevents {{}}\nhttp"
        f" {{\n{places}{servers}}}\n"
    )
    async with _running(
        (nginx, "-e", str(folder / "nginx.log"), "-p", str(folder), "-c", str(configuration)), port
    ) as process:
        yield process


@asynccontextmanager
async def envoy_with(
    text: str, folder: Path, *, port: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    """With this file; it listens on `port`."""
    configuration = folder / "envoy.yaml"
    configuration.write_text(text)
    command = (
        required_envoy(),
        "--config-path",
        str(configuration),
        "--concurrency",
        "1",
        "--disable-hot-restart",
    )
    async with _running(command, port) as process:
        yield process


@asynccontextmanager
async def _running(command: Sequence[str], port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        await _listens(port)
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _listens(port: int) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return

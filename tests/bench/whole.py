"""The whole service as `statesvc up` runs it: all roles forked from one process, on a
database of the bench.
"""

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.acceptance.processes import BOOTSTRAP_KEY, ROOT
from tests.bench.bench import Bench
from tests.bench.processor import command_line, descendants, pss_bytes, server_cpu_seconds
from tests.bench.server import Place
from tests.world.ports import port_for_up

SERVER: Final = "PostgreSQL"
_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeService:
    """While it runs. `data`: the folder of its PostgreSQL server."""

    pid: int
    port: int
    data: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cpu_seconds(self) -> dict[str, float]:
        """Return what was used of the processors so far, by role; the server's processes
        together.
        """
        used: dict[str, float] = defaultdict(float)
        for pid, seconds in descendants(self.pid).items():
            used[_role_of(pid)] += seconds
        used[SERVER] = server_cpu_seconds(self.data)
        return used

    def pss_bytes(self) -> int:
        """Return memory, with pages that several processes share divided between them; the
        server's is not in it.
        """
        return sum(map(pss_bytes, descendants(self.pid)))

    async def post(
        self, path: str, document: Any, *, content_type: str = "application/json"
    ) -> Any:
        """Post a document. Raises RuntimeError for any answer but a success."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        headers = {"Authorization": f"Bearer {BOOTSTRAP_KEY}", "Content-Type": content_type}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{self.url}{path}", data=body) as answer,
        ):
            if not answer.ok:
                raise RuntimeError(
                    f"POST {path} was refused: {answer.status} {await answer.text()}"
                )
            return await answer.json()


def _role_of(pid: int) -> str:
    """Return the role by the title that `up` gives its children."""
    words = command_line(pid).split()
    return words[1] if len(words) > 1 and words[0] == "statesvc" else "supervisor"


@asynccontextmanager
async def whole_service(bench: Bench, place: Place, **settings: str) -> AsyncIterator[WholeService]:
    """Start it, and stop it in order."""
    service = bench.service(place, **settings)
    port = port_for_up()
    with (bench.folder / f"up-{port}.log").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "statesvc", "up", "--port", str(port)),
            cwd=ROOT,
            env=dict(service.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        whole = WholeService(
            pid=process.pid, port=port, data=Path(await place.value("SHOW data_directory"))
        )
        await _ready(whole, process)
        yield whole
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            process.kill()


async def _ready(service: WholeService, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(_START_SECONDS), aiohttp.ClientSession() as session:
        while process.returncode is None:
            try:
                async with (
                    session.get(f"{service.url}/readyz") as ingress,
                    session.get(f"{service.url}/openapi.json") as api,
                ):
                    if ingress.ok and api.ok:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)
    raise RuntimeError(f"`up` ended with {process.returncode}")


def used_between(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {role: after[role] - before.get(role, 0.0) for role in after}

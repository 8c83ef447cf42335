"""Each query of the dashboards against a real Prometheus that scraped the demo: none is wrong; none is empty, but for the quiet ones."""

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import yaml

from deploy.grafana.dashboards import DASHBOARDS, FOLDER, panels, text
from tests.acceptance.processes import free_port

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None and not os.environ.get("CI"), reason="prometheus is not installed (Debian: prometheus)"
)
ROLES: Final = ("ingress", "api", "worker", "notifier", "sealer")
INTERVAL: Final = "30s"
SHOWN_SECONDS: Final = 120


def test_the_files_are_those_of_the_script() -> None:
    stale = [one.uid for one in DASHBOARDS if (FOLDER / f"{one.uid}.json").read_text("utf-8") != text(one)]
    assert stale == [], "run python -m deploy.grafana.dashboards"


class Prometheus:
    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self._url = f"http://127.0.0.1:{port}/api/v1/query"

    async def ask(self, expression: str) -> list[Any]:
        async with self._session.get(self._url, params={"query": expression}) as answer:
            document = await answer.json()
        assert document["status"] == "success", f"{expression}: {document}"
        found: list[Any] = document["data"]["result"]
        return found

    async def empty_panels(self) -> list[str]:
        return [
            f"{dashboard.title}: {panel.title}: {query.expression}"
            for dashboard, panel in panels()
            for query in panel.queries
            if not await self.ask(query.expression.replace("$__rate_interval", INTERVAL)) and not panel.quiet
        ]


@asynccontextmanager
async def scraping(folder: Path, ports: dict[str, int]) -> AsyncIterator[Prometheus]:
    """A Prometheus of its own that scrapes these roles."""
    targets = [{"targets": [f"127.0.0.1:{port}"], "labels": {"role": role}} for role, port in ports.items()]
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [{"job_name": "statesvc", "static_configs": targets}],
    }
    folder.joinpath("prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    with folder.joinpath("prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stdout=log,
            stderr=log,
        )
    try:
        async with aiohttp.ClientSession() as session:
            yield Prometheus(session, port)
    finally:
        process.kill()
        await process.wait()


@needs_prometheus
@pytest.mark.usefixtures("own_processes")
async def test_every_panel_shows_something_of_the_demo(tmp_path: Path) -> None:
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("STATESVC_", "DATABASE_URL"))}
    with tmp_path.joinpath("up.log").open("wb") as log:
        up = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "statesvc", "up", "--demo", "--port", str(port)),
            env={**environment, "STATESVC_DATA_DIR": str(tmp_path / "data")},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    ports = {role: port + place for place, role in enumerate(ROLES)}
    try:
        async with scraping(tmp_path, ports) as prometheus:
            empty = ["not asked yet"]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SHOWN_SECONDS):
                    while empty:
                        await asyncio.sleep(1)
                        with contextlib.suppress(aiohttp.ClientConnectionError):
                            empty = await prometheus.empty_panels()
    finally:
        up.terminate()
        await up.wait()
    assert empty == []

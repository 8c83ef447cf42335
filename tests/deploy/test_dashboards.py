"""Each query of the dashboards against a real Prometheus that scraped the demo: none
is wrong, none is empty.
"""

import asyncio
import contextlib
import json
import math
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from tests.deploy.demo import scraped_demo
from tests.deploy.metric_names import unknown_metrics
from tests.world.prometheus import Prometheus

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None and not os.environ.get("CI"),
    reason="prometheus is not installed (Debian: prometheus)",
)
INTERVAL: Final = "30s"
SHOWN_SECONDS: Final = 120
STEP_SECONDS: Final = 2


FOLDER: Final = Path(__file__).parents[2] / "deploy" / "grafana"
FILES: Final = sorted(FOLDER.glob("*.json"))


def panels() -> Iterator[dict[str, Any]]:
    for file in FILES:
        yield from json.loads(file.read_text("utf-8"))["panels"]


def test_the_dashboards_ask_for_metrics_that_exist() -> None:
    assert len(FILES) == 5
    assert set().union(*(unknown_metrics(file.read_text("utf-8")) for file in FILES)) == set()


def test_every_line_over_time_has_a_legend_of_its_own() -> None:
    for panel in panels():
        legends = [query["legendFormat"] for query in panel["targets"]]
        assert len(set(legends)) == len(legends), panel["title"]
        assert panel["type"] == "stat" or "__auto" not in legends, panel["title"]


async def shows_something(prometheus: Prometheus, kind: str, expression: str, since: float) -> bool:
    """Return whether the panel draws something: one figure of now, or a line since then."""
    expression = expression.replace("$__rate_interval", INTERVAL)
    if kind == "stat":
        found = [one["value"] for one in await prometheus.ask(expression)]
    else:
        lines = await prometheus.ask_range(
            expression, since=since, until=time.time(), step=STEP_SECONDS
        )
        found = [point for line in lines for point in line["values"]]
    return any(math.isfinite(float(value)) for _, value in found)


@needs_prometheus
@pytest.mark.usefixtures("own_processes")
async def test_every_panel_shows_something_of_the_demo(tmp_path: Path) -> None:
    since = time.time()
    async with scraped_demo(tmp_path) as prometheus:
        empty = [(panel["type"], query["expr"]) for panel in panels() for query in panel["targets"]]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SHOWN_SECONDS):
                while empty:
                    await asyncio.sleep(2)
                    with contextlib.suppress(aiohttp.ClientConnectionError):
                        empty = [
                            (kind, expression)
                            for kind, expression in empty
                            if not await shows_something(prometheus, kind, expression, since)
                        ]
    assert empty == []

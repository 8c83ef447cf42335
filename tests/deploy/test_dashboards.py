"""Each query of the dashboards against a real Prometheus that scraped the demo: none
is wrong, none is empty.
"""

import asyncio
import contextlib
import math
import os
import shutil
import time
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from deploy.grafana.dashboards import DASHBOARDS, FOLDER, Panel, Query, panels, text
from tests.deploy.demo import scraped_demo
from tests.world.prometheus import Prometheus

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None and not os.environ.get("CI"),
    reason="prometheus is not installed (Debian: prometheus)",
)
INTERVAL: Final = "30s"
SHOWN_SECONDS: Final = 120
STEP_SECONDS: Final = 2


def test_the_files_are_those_of_the_script() -> None:
    stale = [
        one.uid
        for one in DASHBOARDS
        if (FOLDER / f"{one.uid}.json").read_text("utf-8") != text(one)
    ]
    assert stale == [], "run python -m deploy.grafana.dashboards"


def test_no_two_queries_of_a_panel_have_the_same_legend() -> None:
    assert [
        panel.title
        for _, panel in panels()
        if len({query.legend for query in panel.queries}) < len(panel.queries)
    ] == []


def test_every_line_over_time_has_a_legend() -> None:
    assert [
        panel.title
        for _, panel in panels()
        if panel.kind == "timeseries" and not all(query.legend for query in panel.queries)
    ] == []


async def shows_something(prometheus: Prometheus, panel: Panel, query: Query, since: float) -> bool:
    """Return whether the panel draws something: one figure of now, or a line since then."""
    expression = query.expression.replace("$__rate_interval", INTERVAL)
    if panel.kind == "stat":
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
        empty = [(panel, query) for _, panel in panels() for query in panel.queries]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SHOWN_SECONDS):
                while empty:
                    await asyncio.sleep(2)
                    with contextlib.suppress(aiohttp.ClientConnectionError):
                        empty = [
                            (panel, query)
                            for panel, query in empty
                            if not await shows_something(prometheus, panel, query, since)
                        ]
    assert [f"{panel.title}: {query.expression}" for panel, query in empty] == []

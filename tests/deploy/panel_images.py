"""Draws every panel of the dashboards as Grafana would, from the demo:
`python -m tests.deploy.panel_images FOLDER`.

The same queries go to a real Prometheus that scraped `statesvc up --demo`; a picture of each
dashboard is written to FOLDER, to be looked at: units, legends, what is empty.
"""

import argparse
import asyncio
import html
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from deploy.grafana.dashboards import DASHBOARDS, Dashboard, Panel
from deploy.prometheus.rules import series
from statesvc.telemetry import names
from tests.acceptance.processes import until_false
from tests.deploy.demo import scraped_demo
from tests.world.browser import page
from tests.world.prometheus import Prometheus

INTERVAL: Final = "30s"
STEP_SECONDS: Final = 2
START_SECONDS: Final = 300
WIDTH: Final = 620
HEIGHT: Final = 190
_LEFT: Final = 70
_BOTTOM: Final = 22
_COLOURS: Final = (
    "#3b7dd8",
    "#d97a1e",
    "#3a9d5d",
    "#b23a48",
    "#7b5ea7",
    "#8a6d3b",
    "#d6589f",
    "#4d4d4d",
    "#a5a52a",
    "#2aa5a0",
)
_STYLE: Final = (
    "body{font:13px"
    " sans-serif;width:1330px}main{display:flex;flex-wrap:wrap;gap:10px}section{border:1px solid"
    " #ccc;padding:8px;width:630px}h2{font-size:14px;margin:0 0"
    " 4px}b{font-size:34px}small{display:inline-block;margin:0 10px 0 0}p{color:red}"
)


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a panel: times since the first and values."""

    legend: str
    points: Sequence[tuple[float, float]]


async def curves(prometheus: Prometheus, panel: Panel, since: float, until: float) -> list[Curve]:
    """Return all of a panel's lines, by the names that its legends give."""
    found = []
    for query in panel.queries:
        expression = query.expression.replace("$__rate_interval", INTERVAL)
        for found_series in await prometheus.ask_range(
            expression, since=since, until=until, step=STEP_SECONDS
        ):
            legend = query.legend
            for label, value in found_series["metric"].items():
                legend = legend.replace(f"{{{{{label}}}}}", value)
            points = [
                (float(at) - since, float(value))
                for at, value in found_series["values"]
                if math.isfinite(float(value))
            ]
            if points:
                found.append(Curve(legend, points))
    return found


def shown(value: float, unit: str) -> str:
    """Format a value as Grafana prints it in its units."""
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    suffix = {"s": " s", "bytes": "B", "reqps": " /s", "cps": " /s", "Bps": "B/s"}.get(unit, "")
    if unit == "s" and 0 < abs(value) < 1:
        return f"{value * 1000:.3g} ms"
    if unit == "s" and abs(value) >= 3600:
        return f"{value / 3600:.3g} h" if abs(value) < 172_800 else f"{value / 86_400:.3g} d"
    for bound, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= bound:
            return f"{value / (1e3 if letter == 'k' else bound):.3g} {letter}{suffix.strip()}"
    return f"{value:.3g}{suffix}"


def drawn(panel: Panel, lines: Sequence[Curve], seconds: float) -> str:
    """Draw a panel as HTML."""
    title = f"<h2>{html.escape(panel.title)}</h2>"
    if not lines:
        return f"<section>{title}<p>no data</p></section>"
    if panel.kind == "stat":
        values = "".join(
            f"<b>{shown(line.points[-1][1], panel.unit)}</b>"
            f" <small>{html.escape(line.legend)}</small>"
            for line in lines
        )
        return f"<section>{title}{values}</section>"
    top = max((value for line in lines for _, value in line.points), default=0) * 1.1 or 1.0
    least = min(0.0, *(value for line in lines for _, value in line.points))
    parts = []
    for share in (0, 0.5, 1):
        y = (HEIGHT - _BOTTOM) * (1 - share) + 4
        text = shown(least + (top - least) * share, panel.unit)
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end" font-size="11">{text}</text>'
        )
        parts.append(
            f'<line x1="{_LEFT}" x2="{WIDTH}" y1="{y:.0f}" y2="{y:.0f}" stroke="#e4e4e4"/>'
        )
    for place, line in enumerate(lines):
        points = " ".join(
            f"{_LEFT + (WIDTH - _LEFT) * at / seconds:.1f},"
            f"{(HEIGHT - _BOTTOM) * (1 - (value - least) / (top - least)) + 4:.1f}"
            for at, value in line.points
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{_COLOURS[place % len(_COLOURS)]}"'
            ' stroke-width="1.6"/>'
        )
    legends = "".join(
        f'<small><span style="color:{_COLOURS[place % len(_COLOURS)]}">■</span>'
        f" {html.escape(line.legend or '(none)')}</small>"
        for place, line in enumerate(lines)
    )
    svg = f'<svg width="{WIDTH}" height="{HEIGHT}">{"".join(parts)}</svg>'
    return f"<section>{title}{svg}<div>{legends}</div></section>"


async def document(prometheus: Prometheus, dashboard: Dashboard, since: float, until: float) -> str:
    """Draw a dashboard as HTML."""
    sections = [
        drawn(panel, await curves(prometheus, panel, since, until), until - since)
        for panel in dashboard.panels
    ]
    return (
        "<!doctype html><meta"
        f" charset=utf-8><style>{_STYLE}</style><h1>{dashboard.title}</h1>"
        f"<main>{''.join(sections)}</main>"
    )


async def nothing_applied(prometheus: Prometheus) -> bool:
    """Return whether no message of the demo was applied yet, as far as Prometheus knows."""
    try:
        return not await prometheus.ask(series(names.APPLIED_LAG, "_count"))
    except aiohttp.ClientError:
        return True


async def draw(scratch: Path, folder: Path, seconds: float) -> None:
    """Draw all dashboards, after so long."""
    async with scraped_demo(scratch) as prometheus, page() as tab:
        await tab.set_viewport_size({"width": 1340, "height": 900})
        async with asyncio.timeout(START_SECONDS):
            await until_false(lambda: nothing_applied(prometheus), pause_seconds=1)
        await asyncio.sleep(seconds)
        until = time.time()
        for dashboard in DASHBOARDS:
            await tab.set_content(await document(prometheus, dashboard, until - seconds, until))
            await tab.screenshot(path=folder / f"{dashboard.uid}.png", full_page=True)


def main() -> int:
    """Draw the pictures, and print where they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--seconds", type=float, default=180, help="of the demo (180)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="statesvc-test-panels-") as scratch:
        # the server runs as another user, who must get through
        Path(scratch).chmod(0o755)
        asyncio.run(draw(Path(scratch), options.folder, options.seconds))
    sys.stdout.write(f"{len(DASHBOARDS)} pictures in {options.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Publication of what was measured: docs/bench/results.json, a chart for each part that has one,
and the tables of docs/bench.md.

Parts that were not measured this time keep the figures that they have.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Final

from tests.bench.bench import ROOT
from tests.bench.report import Row, table

PAGE: Final = ROOT / "docs" / "bench.md"
FOLDER: Final = ROOT / "docs" / "bench"
_RESULTS: Final = "results.json"
_BEGIN: Final = "<!-- measured: written by `make bench ARGS=--write` -->"
_SHOWN: Final = (
    f"Headlines and missed bars. [{_RESULTS}](bench/{_RESULTS}) has all rows, with versions,"
    " settings, disk and load average of each run."
)
_LINE: Final = 26
_LABELS: Final = 360
_BARS: Final = 360


def publish(
    measured: Mapping[str, Sequence[Row]],
    facts: Sequence[str],
    conditions: str,
    *,
    order: Sequence[str],
    page: Path = PAGE,
    folder: Path = FOLDER,
) -> None:
    """Take in what was measured and write everything anew.

    What stands above the tables in the page is written by people.

    `facts`: of the machine, a line each; `conditions`: what is another with each run.
    """
    folder.mkdir(exist_ok=True)
    place = folder / _RESULTS
    results: dict[str, Any] = json.loads(place.read_text()) if place.exists() else {}
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    for part, rows in measured.items():
        results[part] = {
            "measured": f"{now}; {conditions}",
            "facts": list(facts),
            "rows": [asdict(row) for row in rows],
        }
    results = {part: results[part] for part in order if part in results}
    place.write_text(json.dumps(results, indent=1) + "\n")
    sections = []
    for part, result in results.items():
        rows = [Row(**row) for row in result["rows"]]
        if not any(row.bar for row in rows):
            continue
        drawn = [row for row in rows if row.figure is not None]
        lines = [
            f"### {part}",
            f"{result['measured'].partition('; fdatasync')[0]}; {result['facts'][0]}",
            "",
            table([row for row in rows if row.met is False or not row.what.startswith("... ")]),
            "",
        ]
        if len(drawn) > 1:
            (folder / f"{part}.svg").write_text(chart(drawn))
            lines += [f"![{part}]({folder.name}/{part}.svg)", ""]
        sections.append("\n".join(lines))
    above = page.read_text().partition(_BEGIN)[0].rstrip()
    body = "\n".join(["## Figures", _SHOWN, "", *sections])
    page.write_text(f"{above}\n\n{_BEGIN}\n\n{body}")


def chart(rows: Sequence[Row]) -> str:
    """Draw one bar a row, as SVG; its text says what was measured, so the chart needs no axis."""
    figures = [row.figure or 0.0 for row in rows]
    most = max(figures) or 1.0
    width, height = _LABELS + _BARS + 260, _LINE * len(rows) + 8
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            ' font-family="sans-serif" font-size="12" role="img">'
        ),
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, (row, figure) in enumerate(zip(rows, figures, strict=True)):
        top, length = 4 + number * _LINE, max(1.0, figure / most * _BARS)
        colour = "#b3261e" if row.met is False else "#3367a6"
        lines += [
            (
                f'<text x="{_LABELS - 8}" y="{top + 16}"'
                f' text-anchor="end">{escape(row.what.removeprefix("... "))}</text>'
            ),
            (
                f'<rect x="{_LABELS}" y="{top + 3}" width="{length:.1f}" height="{_LINE - 8}"'
                f' fill="{colour}"/>'
            ),
            (
                f'<text x="{_LABELS + length + 6:.1f}"'
                f' y="{top + 16}">{escape(row.measured.partition(" (")[0])}</text>'
            ),
        ]
    return "\n".join([*lines, "</svg>", ""])

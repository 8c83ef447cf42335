"""Report of what was measured, next to its bar.

Nothing here judges but the bar itself: a bench that fails still ends well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    `met` None: there is no bar, or nothing to hold against it. `figure`: drawn in the part's chart.
    """

    what: str
    measured: str
    bar: str = ""
    met: bool | None = None
    figure: float | None = None


def rate(values: Sequence[float], unit: str = "/s") -> str:
    """Format the median, and between which values the runs lay."""
    middle = f"{median(values):,.0f}{unit}"
    return middle if len(values) == 1 else f"{middle} ({min(values):,.0f} .. {max(values):,.0f})"


def milliseconds(seconds: Sequence[float]) -> str:
    """Format times as `rate` does."""
    middle = f"{median(seconds) * 1e3:,.2f} ms"
    return (
        middle
        if len(seconds) == 1
        else f"{middle} ({min(seconds) * 1e3:,.2f} .. {max(seconds) * 1e3:,.2f})"
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the nearest rank, of values in order; 0.0 where there are none."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def times(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return how many times theirs ours is, median against median."""
    return median(ours) / median(theirs) if theirs and median(theirs) else 0.0


def table(rows: Sequence[Row]) -> str:
    """Format the rows as a Markdown table that reads well on a terminal too."""
    said = {True: "yes", False: "NO", None: ""}
    cells = [
        ("measurement", "result", "bar", "met"),
        *((row.what, row.measured, row.bar, said[row.met]) for row in rows),
    ]
    widths = [max(len(cell[column]) for cell in cells) for column in range(4)]
    lines = [
        "| "
        + " | ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True))
        + " |"
        for cell in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def medians(results: Sequence[dict[str, Any]], key: str) -> list[float]:
    """Return one figure of all runs."""
    return [float(result[key]) for result in results]

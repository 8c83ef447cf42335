"""Small charts as inline SVG: numbers that are sooner seen than read. Each says in words what it shows, for those who do not see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

_CLASSES: Final = ("first", "second", "third")
_HEIGHT: Final = 64
_LABEL_HEIGHT: Final = 14


@dataclass(frozen=True, slots=True)
class Bar:
    """One column: parts from the bottom up, and what it stands for. `tick`: what is written under it; empty: the label."""

    label: str
    parts: Sequence[float]
    tick: str = ""


def bars(columns: Sequence[Bar], *, title: str, width: int = 480, label_every: int = 0, mark: float = 0) -> Markup:
    """Stacked columns. Empty where all are zero: there is nothing to see. `mark`: a value that a line is drawn at; 0: none."""
    most = max((sum(column.parts) for column in columns), default=0)
    if not most:
        return Markup()
    most = max(most, mark)
    step = width / len(columns)
    drawn = []
    for place, column in enumerate(columns):
        y = float(_HEIGHT)
        for name, part in zip(_CLASSES, column.parts, strict=False):
            height = _HEIGHT * part / most
            y -= height
            if part:
                drawn.append(
                    Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>').format(
                        name, place * step, y, max(step - 1, 1), height, column.label
                    )
                )
        if label_every and place % label_every == 0:
            drawn.append(Markup('<text x="{:.1f}" y="{}">{}</text>').format(place * step, _HEIGHT + 12, column.tick or column.label))
    if mark:
        y = max(_HEIGHT * (1 - mark / most), 1)
        drawn.append(Markup('<line class="mark" x1="0" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(width, y, y))
    return _chart(drawn, title=title, width=width)


def line(points: Sequence[tuple[float, float]], *, title: str, width: int = 480, ceiling: float | None = None) -> Markup:
    """A line through points (x ascending); `ceiling`: what the height of the chart stands for."""
    if len(points) < 2:
        return Markup()
    first, last = points[0][0], points[-1][0]
    most = ceiling or max(y for _, y in points)
    if last <= first or most <= 0:
        return Markup()
    path = " ".join(f"{width * (x - first) / (last - first):.1f},{_HEIGHT * (1 - min(y / most, 1)):.1f}" for x, y in points)
    return _chart([Markup('<polyline class="line" points="{}"/>').format(path)], title=title, width=width)


def meter(value: float, of: float, *, title: str, width: int = 160) -> Markup:
    """A bar that is filled so far."""
    filled = 0 if of <= 0 else min(value / of, 1) * width
    return Markup(
        '<svg class="chart" role="img" viewBox="0 0 {width} 10" width="{width}" height="10"><title>{title}</title>'
        '<rect class="second" width="{width}" height="10" rx="3"/><rect class="first" width="{filled:.1f}" height="10" rx="3"/></svg>'
    ).format(width=width, title=title, filled=filled)


def _chart(drawn: Sequence[Markup], *, title: str, width: int) -> Markup:
    height = _HEIGHT + _LABEL_HEIGHT
    return Markup(
        '<svg class="chart" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}"><title>{title}</title>{drawn}'
        '<line class="axis" x1="0" x2="{width}" y1="{base}" y2="{base}"/></svg>'
    ).format(width=width, height=height, title=title, drawn=Markup().join(drawn), base=_HEIGHT + 0.5)

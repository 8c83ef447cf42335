"""Small charts as inline SVG. Each has a title in words, for screen readers.

Horizontal positions are percentages, so a chart fills its container, on a phone too, and its text
stays as large as all other text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

_CLASSES: Final = ("first", "second", "third")
_HEIGHT: Final = 64
_FULL_HEIGHT: Final = 112
_LABEL_HEIGHT: Final = 16
_GRID_LINES: Final = 3
_BESIDE_SCALE: Final = 91
"""Width of the columns beside the scale, in percent.

On a phone, too, the rest holds five digits.
"""
_STEPS: Final = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True)
class Bar:
    """A column: parts from the bottom up, and its label.

    `tick`: the text under it; empty: the label.
    """

    label: str
    parts: Sequence[float]
    tick: str = ""


def bars(
    columns: Sequence[Bar],
    *,
    title: str,
    width: int | None = None,
    height: int = 0,
    label_every: int = 0,
    mark: float = 0,
    unit: str | None = None,
) -> Markup:
    """Draw stacked columns; empty where all are zero.

    `width`: in pixels; None: as wide as the page. `height`: in pixels; 0: the usual height.
    `mark`: a value to draw a line at; 0: none. `unit`: follows the numbers of the scale; None:
    no scale.
    """
    most = max((sum(column.parts) for column in columns), default=0)
    if not most:
        return Markup()
    height = height or (_HEIGHT if unit is None else _FULL_HEIGHT)
    drawn: list[Markup] = []
    scale: list[Markup] = []
    most = max(most, mark)
    if unit is not None:
        step = _step(most)
        # room for the words of the highest line
        most = max(most, step * math.ceil(most / step)) * 1.12
        lines = [step * number for number in range(1, int(most / step) + 1)]
        drawn += [_grid_line(height * (1 - value / most)) for value in lines]
        # no column reaches above the highest line: there is room for the unit
        scale = [
            _scale_text(value, height * (1 - value / most), unit if value == lines[-1] else "")
            for value in lines
        ]
    share = (100 if unit is None else _BESIDE_SCALE) / len(columns)
    for place, column in enumerate(columns):
        y = float(height)
        for name, part in zip(_CLASSES, column.parts, strict=False):
            tall = height * part / most
            y -= tall
            if part:
                drawn.append(
                    Markup(
                        '<rect class="{}" x="{:.2f}%" y="{:.1f}" width="{:.2f}%" height="{:.1f}"><title>{}</title></rect>'
                    ).format(name, place * share, y, share * 0.88, tall, column.label)
                )
        if label_every and place % label_every == 0:
            drawn.append(
                Markup('<text x="{:.2f}%" y="{}">{}</text>').format(
                    place * share, height + 13, column.tick or column.label
                )
            )
    if mark:
        y = max(height * (1 - mark / most), 1)
        drawn.append(
            Markup('<line class="mark" x1="0" x2="100%" y1="{:.1f}" y2="{:.1f}"/>').format(y, y)
        )
    drawn.append(
        Markup('<line class="axis" x1="0" x2="100%" y1="{y}" y2="{y}"/>').format(y=height + 0.5)
    )
    return _chart(
        [*drawn, *scale],
        title=title,
        width=width,
        height=height + (_LABEL_HEIGHT if label_every else 2),
    )


def line(
    points: Sequence[float | None],
    *,
    title: str,
    limit: float | None = None,
    style: str = "",
    width: int | None = None,
) -> Markup:
    """Draw a line through values at equal distances; None: a gap.

    `limit`: the value of a dashed line, drawn if it is near.
    """
    known = [value for value in points if value is not None]
    if not known:
        return Markup()
    height = 32
    most = max(known) or 1.0
    drawn: list[Markup] = []
    if limit is not None and most > limit / 4:
        most = max(most, limit * 1.1)
        y = height * (1 - limit / most)
        drawn.append(
            Markup('<line class="mark" x1="0" x2="100%" y1="{:.1f}" y2="{:.1f}"/>').format(y, y)
        )
    step = 100 / max(len(points) - 1, 1)
    parts: list[list[str]] = [[]]
    for place, value in enumerate(points):
        if value is None:
            parts.append([])
        else:
            parts[-1].append(f"{place * step:.1f},{height - 1 - (height - 2) * value / most:.1f}")
    for part in filter(None, parts):
        path = " ".join(part if len(part) > 1 else [*part, *part])
        drawn.append(Markup('<polyline class="line {}" points="{}"/>').format(style, path))
    curve = Markup(
        '<svg viewBox="0 0 100 {0}" preserveAspectRatio="none" width="100%" height="{0}">{1}</svg>'
    ).format(height, Markup().join(one for one in drawn if "polyline" in one))
    marks = [one for one in drawn if "polyline" not in one]
    return _chart([*marks, curve], title=title, width=width, height=height)


def meter(
    value: float, of: float, *, title: str, width: int | None = 160, style: str = "first"
) -> Markup:
    """Draw a bar that is filled to `value`."""
    filled = 0 if of <= 0 else min(max(value / of, 0.0), 1) * 100
    kind, across, height = ("meter", "100%", 6) if width is None else ("chart", f"{width}", 10)
    return Markup(
        '<svg class="{kind}" width="{across}" height="{height}" role="img"><title>{title}</title>'
        '<rect class="rest" width="100%" height="100%" rx="3"/><rect class="{style}" width="{filled:.1f}%" height="100%" rx="3"/></svg>'
    ).format(kind=kind, across=across, height=height, title=title, filled=filled, style=style)


def _step(most: float) -> float:
    """Return the distance of the lines of a scale: 1, 2 or 5 of some power of ten."""
    rough = most / _GRID_LINES
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * step for step in _STEPS if power * step >= rough)


def _grid_line(y: float) -> Markup:
    return Markup('<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>').format(y=y)


def _scale_text(value: float, y: float, unit: str) -> Markup:
    return Markup('<text x="100%" y="{y:.1f}" text-anchor="end">{value}{unit}</text>').format(
        y=y - 3, value=f"{value:,.0f}" if value >= 1 else f"{value:g}", unit=unit
    )


def _chart(drawn: Sequence[Markup], *, title: str, width: int | None, height: float) -> Markup:
    return Markup(
        '<svg class="chart" role="img" width="{width}" height="{height:g}"><title>{title}</title>{drawn}</svg>'
    ).format(
        width="100%" if width is None else width,
        height=height,
        title=title,
        drawn=Markup().join(drawn),
    )

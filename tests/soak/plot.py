"""A chart of what a receiver saw, as SVG by hand: two curves over time, each with an axis of its
own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

WIDTH: Final = 900
HEIGHT: Final = 320
MARGIN: Final = 56
_COLOURS: Final = ("#1f5fa8", "#b0560f")


@dataclass(frozen=True, slots=True)
class Curve:
    """One value a second, from the first on."""

    name: str
    values: Sequence[float]


def write_chart(
    path: Path, title: str, left: Curve, right: Curve, *, shaded: tuple[float, float] | None = None
) -> None:
    """Write a chart. `shaded`: the seconds in which the receiver had its trouble."""
    seconds = max(len(left.values), len(right.values), 2)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
            ' font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="20" font-size="14">{title}</text>',
    ]
    if shaded is not None:
        begins, ends = (_x(at, seconds) for at in shaded)
        parts.append(
            f'<rect x="{begins:.1f}" y="{MARGIN}" width="{ends - begins:.1f}"'
            f' height="{HEIGHT - 2 * MARGIN}" fill="#f1e6e0"/>'
        )
    parts.extend(
        f'<text x="{_x(at, seconds):.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{at}'
        " s</text>"
        for at in range(0, seconds, 10)
    )
    for place, curve in enumerate((left, right)):
        parts.extend(_curve(curve, _COLOURS[place], seconds, on_the_left=place == 0))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*parts, "</svg>", ""]), "utf-8")


def _curve(curve: Curve, colour: str, seconds: int, *, on_the_left: bool) -> list[str]:
    top = max([*curve.values, 1.0]) * 1.1
    points = " ".join(
        f"{_x(at, seconds):.1f},{_y(value / top):.1f}" for at, value in enumerate(curve.values)
    )
    x, anchor = (MARGIN - 6, "end") if on_the_left else (WIDTH - MARGIN + 6, "start")
    marks = [
        f'<text x="{x}" y="{_y(share) + 4:.1f}" text-anchor="{anchor}"'
        f' fill="{colour}">{top * share:.0f}</text>'
        for share in (0, 0.5, 1)
    ]
    label = (
        f'<text x="{x}" y="{MARGIN - 10}" text-anchor="{"start" if on_the_left else "end"}"'
        f' fill="{colour}">{curve.name}</text>'
    )
    return [
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
        label,
        *marks,
    ]


def _x(at: float, seconds: int) -> float:
    return MARGIN + (WIDTH - 2 * MARGIN) * at / (seconds - 1)


def _y(share: float) -> float:
    return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * share

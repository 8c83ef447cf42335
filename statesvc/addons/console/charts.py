"""Small charts as inline SVG. Each has a title in words, for screen readers.

Horizontal positions are percentages, so a chart fills its container, on a phone too, and its text
stays as large as all other text.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from markupsafe import Markup

from statesvc.addons.console.formats import instant
from statesvc.addons.console.screen import Picture
from statesvc.subscriptions.recorded_attempts import RecentTries, Try

_CLASSES: Final = ("first", "second", "third")
_HEIGHT: Final = 64
_FULL_HEIGHT: Final = 112
_LABEL_HEIGHT: Final = 16
_GRID_LINES: Final = 3
# Width of the columns beside the scale, in percent. On a phone, too, the rest holds five digits.
_BESIDE_SCALE: Final = 91
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
                        '<rect class="{}" x="{:.2f}%" y="{:.1f}" width="{:.2f}%" height="{:.1f}">'
                        "<title>{}</title></rect>"
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
    words: Callable[[float], str] = str,
) -> Markup:
    """Draw a line through values at equal distances; None: a gap.

    `limit`: the value of a dashed line, drawn if it is near; `words`: of the scale's top.
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
    axis = Markup('<line class="axis" x1="0" x2="100%" y1="{y}" y2="{y}"/>').format(y=height - 0.5)
    top = Markup('<text x="100%" y="9" text-anchor="end">{}</text>').format(
        words(most) if max(known) else ""
    )
    return _chart([*marks, axis, curve, top], title=title, width=None, height=height)


def meter(
    value: float, of: float, *, title: str, width: int | None = 160, style: str = "first"
) -> Markup:
    """Draw a bar that is filled to `value`."""
    filled = 0 if of <= 0 else min(max(value / of, 0.0), 1) * 100
    kind, across, height = ("meter", "100%", 6) if width is None else ("chart", f"{width}", 10)
    return Markup(
        '<svg class="{kind}" width="{across}" height="{height}" role="img"><title>{title}</title>'
        '<rect class="rest" width="100%" height="100%" rx="3"/>'
        '<rect class="{style}" width="{filled:.1f}%" height="100%" rx="3"/></svg>'
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
        '<svg class="chart" role="img" width="{width}" height="{height:g}">'
        "<title>{title}</title>{drawn}</svg>"
    ).format(
        width="100%" if width is None else width,
        height=height,
        title=title,
        drawn=Markup().join(drawn),
    )


MINUTES: Final = 60
_MINUTE: Final = timedelta(minutes=1)
_TICK_EVERY: Final = 10


@dataclass(slots=True, kw_only=True)
class Minute:
    """`in_flight`: the most that were under way at a time within it."""

    begins: datetime
    delivered: int = 0
    failed: int = 0
    in_flight: int = 0


def minutes_of(tries: Sequence[Try], *, now: datetime) -> list[Minute]:
    """Return the last hour, the oldest first; the last minute is not over yet."""
    first = now.replace(second=0, microsecond=0) - (MINUTES - 1) * _MINUTE
    hour = [Minute(begins=first + place * _MINUTE) for place in range(MINUTES)]
    for one in tries:
        if 0 <= (place := (one.started_at - first) // _MINUTE) < MINUTES:
            if one.is_delivered:
                hour[place].delivered += 1
            else:
                hour[place].failed += 1
    _count_in_flight(tries, hour)
    return hour


def _count_in_flight(tries: Sequence[Try], hour: Sequence[Minute]) -> None:
    # at the same time an end comes before a beginning
    changes = deque(
        sorted([*((one.started_at, 1) for one in tries), *((one.ended_at, -1) for one in tries)])
    )
    under_way = 0
    for minute in hour:
        while changes and changes[0][0] <= minute.begins:
            under_way += changes.popleft()[1]
        minute.in_flight = under_way
        while changes and changes[0][0] < minute.begins + _MINUTE:
            under_way += changes.popleft()[1]
            minute.in_flight = max(minute.in_flight, under_way)


def limiter_charts(recent: RecentTries, *, limit: int) -> list[Picture]:
    """Draw the charts; none without attempts.

    `limit`: how many may be under way now; 0: unknown.
    """
    hour = minutes_of(recent.tries, now=recent.now)
    total = sum(one.delivered + one.failed for one in hour)
    most = max(one.in_flight for one in hour)
    if not total:
        return []
    requests = [
        Bar(
            f"{_time(one)}: {one.delivered:,} delivered, {one.failed:,} failed",
            (one.delivered, 0, one.failed),
            tick=_time(one),
        )
        for one in hour
    ]
    in_flight = [
        Bar(f"{_time(one)}: {one.in_flight:,} at a time", (one.in_flight,), tick=_time(one))
        for one in hour
    ]
    allowed = f"; {limit:,} are allowed now" if limit else ""
    note = f"{total:,} requests, minute by minute (UTC)"
    if recent.is_capped:
        note = Markup(
            "{}. There was more than fits here: only what began since {} is counted."
        ).format(note, instant(min(one.started_at for one in recent.tries)))
    return [
        Picture(
            "Requests, last hour",
            bars(
                requests,
                title=f"Requests of the last hour, minute by minute: {total:,}",
                label_every=_TICK_EVERY,
                unit=" a minute",
            ),
            (("first", "delivered"), ("third", "failed")),
            note,
        ),
        Picture(
            "Requests at a time",
            bars(
                in_flight,
                title=f"Requests under way at a time, minute by minute: {most:,} at most{allowed}",
                label_every=_TICK_EVERY,
                mark=limit,
                unit="",
            ),
            (
                ("first", f"under way, {most:,} at most"),
                *((("mark", f"{limit:,} allowed now"),) if limit else ()),
            ),
        ),
    ]


def _time(minute: Minute) -> str:
    return f"{minute.begins:%H:%M}"

"""Charts of a receiver's load by minute of the last hour: requests, and requests under way. Pure.

The limiter is not sampled: its load follows from start and duration of each attempt.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from markupsafe import Markup

from statesvc.addons.console.charts import Bar, bars
from statesvc.addons.console.formats import instant
from statesvc.addons.console.screen import Picture
from statesvc.subscriptions.recorded_attempts import RecentTries, Try

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

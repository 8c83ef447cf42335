"""Cards of the promises: present value, last hour, rest of the error budget of three days. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from statesvc.addons.console.charts import line, meter
from statesvc.addons.console.screen import Card
from statesvc.background.duration import duration
from statesvc.telemetry.objective_minutes import ObjectiveMinute
from statesvc.telemetry.objectives import (
    ACK_AVAILABILITY,
    ACK_LATENCY,
    FIRST_ATTEMPT,
    LAG,
    SEALING,
    MinuteCount,
    Objective,
)

HOUR_MINUTES: Final = 60
BUDGET_MINUTES: Final = 3 * 24 * 60
_NOW_MINUTES: Final = 5
# Share of the budget below which it shows as a warning.
_LOW: Final = 0.5
# Waiting time above which the backlog is shown in place of the throughput.
_WAITING_SECONDS_MIN: Final = 5.0


def promise_cards(
    minutes: Sequence[ObjectiveMinute],
    shares: Mapping[str, MinuteCount],
    *,
    now: datetime,
    oldest_ready_seconds: float,
    oldest_unsealed_seconds: float,
) -> list[Card]:
    """Return all five cards. `minutes`: of the last hour; `shares`: of the last three days."""
    hours = {objective.name: _hour(minutes, objective, now) for objective in _NAMES}
    waiting = {LAG.name: oldest_ready_seconds, SEALING.name: oldest_unsealed_seconds}
    return [
        _card(
            objective,
            hours[objective.name],
            shares.get(objective.name, MinuteCount()),
            waiting.get(objective.name, 0.0),
        )
        for objective in _NAMES
    ]


_NAMES: Final[Mapping[Objective, tuple[str, str]]] = {
    ACK_LATENCY: ("ACK, p99", "promise 100 ms"),
    ACK_AVAILABILITY: ("Acknowledged", "promise 99.95 %"),
    LAG: ("Applied in time", "promise 2 min for 99.9 %"),
    FIRST_ATTEMPT: ("Notified, p99", "promise 10 s"),
    SEALING: ("Sealed", "alarm at 60 s"),
}


def _hour(
    minutes: Sequence[ObjectiveMinute], objective: Objective, now: datetime
) -> list[MinuteCount | None]:
    """Return the counts minute by minute; None without counts."""
    first = now.replace(second=0, microsecond=0) - timedelta(minutes=HOUR_MINUTES - 1)
    found = {one.begins: one.counted for one in minutes if one.objective == objective.name}
    return [found.get(first + timedelta(minutes=place)) for place in range(HOUR_MINUTES)]


def _card(
    objective: Objective,
    hour: Sequence[MinuteCount | None],
    budget: MinuteCount,
    waiting_seconds: float,
) -> Card:
    name, promise = _NAMES[objective]
    latest, whole = _merged(hour[-_NOW_MINUTES:]), _merged(hour)
    shown = latest if latest.total else whole
    value, unit, is_missed = _value(objective, shown, waiting_seconds)
    left, left_style = _left(objective, budget, whole)
    points = [None if one is None or not one.total else _point(objective, one) for one in hour]
    style = "bad" if is_missed else left_style
    chart = line(
        points,
        title=f"{name}, minute by minute of the last hour",
        limit=objective.seconds or 1 - objective.share,
        style=style,
        words=lambda most: _top(objective, most),
    )
    rest = meter(
        _share_left(objective, budget), 1, title=left, width=None, style=left_style or "good"
    )
    return Card(name, value, unit, style, promise, chart + rest, left, left_style or "soft")


def _top(objective: Objective, most: float) -> str:
    """Return the highest value of the chart's scale in words."""
    if objective.seconds is None:
        return f"{100 * most:.1f} % not"
    return f"{1000 * most:,.0f} ms" if most < 1 else duration(most)


def _merged(counts: Sequence[MinuteCount | None]) -> MinuteCount:
    merged = MinuteCount()
    for count in counts:
        if count is not None:
            merged.add(count)
    return merged


def _point(objective: Objective, count: MinuteCount) -> float:
    if objective.seconds is None:
        return count.missed / count.total
    return count.quantile(0.99) or 0.0


def _value(
    objective: Objective, count: MinuteCount, waiting_seconds: float
) -> tuple[str, str, bool]:
    """Return the large value, its unit, and whether the promise is missed now."""
    if objective.seconds is None:
        if not count.total:
            return "—", "nothing was pushed", False
        share = count.kept / count.total
        shown = f"{100 * share:.2f}".rstrip("0").rstrip(".")
        return shown, "%", share < objective.share
    if waiting_seconds > _WAITING_SECONDS_MIN:
        return duration(waiting_seconds), "waits the oldest", waiting_seconds > objective.seconds
    found = count.quantile(0.99)
    if found is None:
        return "—", "nothing lately", False
    if objective is ACK_LATENCY:
        return f"{1000 * found:.1f}", "ms", found > objective.seconds
    return (
        (f"{found:.1f}", "s", found > objective.seconds)
        if found < _NOW_MINUTES * 60
        else (duration(found), "", True)
    )


def _share_left(objective: Objective, budget: MinuteCount) -> float:
    if not budget.total:
        return 1.0
    return max(0.0, 1 - budget.missed / (budget.total * (1 - objective.share)))


def _left(objective: Objective, budget: MinuteCount, hour: MinuteCount) -> tuple[str, str]:
    """Return the rest of the budget, its burn rate, and the severity."""
    share = _share_left(objective, budget)
    burn = hour.missed / (hour.total * (1 - objective.share)) if hour.total else 0.0
    if not budget.total:
        return "nothing counted yet", ""
    words = f"{100 * share:.0f} % of the budget left"
    if burn <= 1:
        return words, "" if share > _LOW else "warn"
    ends = f", gone in {duration(share * BUDGET_MINUTES * 60 / burn)}" if share else ""
    style = "bad" if not share or share * BUDGET_MINUTES * 60 / burn < 6 * 3600 else "warn"
    return f"{100 * share:.0f} % left · burns {burn:.0f}×{ends}", style

"""Overview: tasks by cause, promises, pushes by carrier, processes, operator actions.

Findings are from the same source as `statesvc status`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from events.carriers import CARRIERS
from statesvc.addons.console.carrier_screens import OVERVIEW, read_board
from statesvc.addons.console.charts import Bar, bars
from statesvc.addons.console.formats import chip
from statesvc.addons.console.promise_cards import BUDGET_MINUTES, HOUR_MINUTES, promise_cards
from statesvc.addons.console.screen import Cards, PageRequest, Picture, Screen
from statesvc.api.service_status import ServiceStatus, read_status
from statesvc.background.duration import duration
from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.health.finding import Finding, Urgency
from statesvc.http.keys.key_store import Scope
from statesvc.http.views import Column, Table, draw
from statesvc.log.actions import NEWEST_ACTION, ActionFilter, read_actions
from statesvc.telemetry.objective_minutes import read_minutes, read_shares
from statesvc.telemetry.objectives import ACK_AVAILABILITY

_SQL: Final = queries("statesvc.addons.console", "overview")
# Pages of the console with more about a finding, by its runbook page, or else by its subject.
_PLACES: Final[Mapping[str, tuple[str, str]]] = {
    "Lag": ("/console/queue", "Queue"),
    "CarrierHeld": ("/console/carriers", "Carriers"),
    "CarrierSilent": ("/console/carriers", "Carriers"),
    "UnknownCodes": ("/console/carriers", "Carriers"),
    "DeadLettersGrow": ("/console/dead-letters", "Dead letters"),
    "SubscriberFailing": ("/console/subscriptions", "Subscriptions"),
    "RoleDown": ("/console/workers", "Workers"),
    "awaited numbers": ("/console/awaited", "Awaited numbers"),
}
# Spans of the chart of webhooks: name, minutes, and minutes per column.
_SPANS: Final[Mapping[str, tuple[str, int, int]]] = {
    "1h": ("Last hour", 60, 1),
    "6h": ("Last 6 hours", 6 * 60, 5),
    "24h": ("Last 24 hours", 24 * 60, 20),
    "7d": ("Last 7 days", 7 * 24 * 60, 120),
}
_ROLES: Final = ("ingress", "api", "worker", "notifier", "sealer")
_CARRIERS_MAX: Final = 12
_ACTIONS_MAX: Final = 5
# Pages of findings that are a single task, however many carriers or causes they name.
_ALIKE: Final = frozenset(
    {"Lag", "CarrierSilent", "DeadLettersGrow", "UnknownCodes", "FormatChanged", "WorkersOutdated"}
)
_WORDS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(slots=True)
class Alarm:
    """A task. `others`: further findings of the same cause, or consequences of it."""

    first: Finding
    others: list[Finding] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Label of its urgency."""
        return self.first.urgency.label.upper()


def alarms_of(findings: Sequence[Finding]) -> list[Alarm]:
    """Group the findings in their order: the worst first, each consequence behind its cause."""
    alarms: list[Alarm] = []
    for finding in findings:
        of = next((alarm for alarm in alarms if _belongs(finding, alarm.first)), None)
        if of is None:
            alarms.append(Alarm(finding))
        else:
            of.others.append(finding)
    return alarms


def headline(alarms: Sequence[Alarm]) -> str:
    """Return how much there is to do, in a sentence."""
    now = sum(alarm.first.urgency is Urgency.NOW for alarm in alarms)
    today = sum(alarm.first.urgency is Urgency.HUMAN for alarm in alarms)
    if not now and not today:
        return "Nothing needs you"
    sentence = ", ".join(_parts(now, today))
    return sentence[:1].upper() + sentence[1:]


_PROCESSES: Final = Table(
    "role", Column("count", "Running"), Column("state_chip", "State"), title="Processes"
)


@dataclass(frozen=True, slots=True)
class Overview:
    """The first screen."""

    pool: Connections

    async def show(self, visit: PageRequest) -> Mapping[str, Any]:
        """Show all of it. `span`: of the chart of webhooks."""
        span = visit.query("span") if visit.query("span") in _SPANS else "1h"
        async with self.pool.connection() as connection:
            status = await read_status(connection)
            lanes = status.queue["carriers"]
            board = await read_board(connection, sorted({*CARRIERS, *lanes} - {""}), lanes)
            cards = promise_cards(
                await read_minutes(connection, minutes=HOUR_MINUTES),
                await read_shares(connection, minutes=BUDGET_MINUTES),
                now=board.now,
                oldest_ready_seconds=max(
                    (lane["oldest_ready_seconds"] or 0 for lane in lanes.values()), default=0
                ),
                oldest_unsealed_seconds=status.sample.oldest_unsealed_seconds,
            )
            pushes = await _pushes(connection, span, board.now)
            actions, _ = await read_actions(
                connection, ActionFilter(), before=NEWEST_ACTION, limit=_ACTIONS_MAX
            )
        alarms = alarms_of(status.troubles)
        carriers = [line for line in board.lines if not line.is_quiet]
        shown = [line.row() for line in carriers[:_CARRIERS_MAX]]
        return {
            "title": headline(alarms),
            "alarms": [(alarm, _place(alarm.first, visit)) for alarm in alarms],
            "settled": next(
                (one for one in status.sample.promises if one.promise == "settled"), None
            ),
            "is_live": True,
            "cards": Cards(cards),
            "pushes": pushes,
            "span": span,
            "spans": {name: shown for name, (shown, _, _) in _SPANS.items()},
            "carriers": draw(OVERVIEW, {"items": shown}),
            "carriers_count": len(carriers),
            "roles": draw(_PROCESSES, {"items": _roles(status)}),
            "actions": actions,
        }

    def screen(self) -> Screen:
        return Screen(
            path="/console",
            title="Overview",
            template="overview.html",
            scope=Scope.OPS,
            show=self.show,
            menu="Overview",
        )


async def _pushes(connection: AsyncConnection[Any], span: str, now: datetime) -> Picture:
    """Draw the chart of webhooks: for an hour by carrier; for longer spans by acknowledgement."""
    shown, minutes, step = _SPANS[span]
    if span == "1h":
        rows = await (await connection.execute(_SQL["minutes"])).fetchall()
        columns = [
            Bar(_label(f"{minute:%H:%M}", counts), counts, tick=f"{minute:%H:%M}")
            for minute, *counts in rows
        ]
        names: tuple[str, ...] = ("new", "repeated", "refused")
        every = 10
    else:
        found = await read_minutes(connection, minutes=minutes, step=step)
        counts_at = {
            one.begins: one.counted for one in found if one.objective == ACK_AVAILABILITY.name
        }
        width = timedelta(minutes=step)
        last = now - timedelta(seconds=now.timestamp() % width.total_seconds())
        form = "%a %H:%M" if span == "7d" else "%H:%M"
        columns = []
        for place in range(minutes // step):
            begins = last - (minutes // step - 1 - place) * width
            count = counts_at.get(begins)
            parts = (0, 0, 0) if count is None else (count.kept, 0, count.missed)
            columns.append(Bar(_label(f"{begins:{form}}", parts), parts, tick=f"{begins:{form}}"))
        names = ("acknowledged", "", "not acknowledged")
        every = max(minutes // step // 6, 1)
    totals = [sum(column.parts[place] for column in columns) for place in range(3)]
    chart = bars(
        columns,
        title=f"Webhooks, {shown.lower()}: {_words(names, totals)}",
        label_every=every,
        unit=" a minute" if step == 1 else "",
    )
    legend = [
        (style, f"{name} {total:,.0f}")
        for style, name, total in zip(("first", "second", "third"), names, totals, strict=True)
        if name
    ]
    note = f"A column is {duration(step * 60)}." if step > 1 else ""
    return Picture("", chart, legend, note if chart else "Nothing was pushed.")


def _words(names: Sequence[str], totals: Sequence[float]) -> str:
    return ", ".join(
        f"{total:,.0f} {name}" for name, total in zip(names, totals, strict=True) if name
    )


def _label(when: str, parts: Sequence[float]) -> str:
    return f"{when}: {sum(parts):,.0f}"


def _place(trouble: Finding, visit: PageRequest) -> tuple[str, str] | None:
    """Return the path and name of the console's page about it."""
    path, name = _PLACES.get(trouble.page or trouble.about, ("", ""))
    if not path or not visit.is_shown(path):
        return None
    if trouble.subscription_id is not None:
        return f"{path}/{trouble.subscription_id}", "Subscription"
    return (
        path
        if trouble.subscription_state is None
        else f"{path}?state={trouble.subscription_state}",
        name,
    )


def _roles(status: ServiceStatus) -> list[dict[str, Any]]:
    running = dict(status.sample.processes)
    rows = []
    for role in _ROLES:
        silent = [
            one
            for one in status.sample.running
            if one.role == role and one.is_silent and not one.is_replaced
        ]
        alive = running.get(role, 0)
        count = f"{alive:,} of {alive + len(silent):,}" if silent else f"{alive:,}"
        if silent:
            state, style = (
                f"silent {duration(min(one.seen_seconds_ago for one in silent))}",
                "bad" if not alive else "warn",
            )
        elif alive:
            state, style = "alive", "good"
        else:
            # api takes webhooks where no ingress runs
            state, style = (
                ("none", "idle")
                if role == "ingress" and running.get("api")
                else ("none runs", "bad")
            )
        rows.append({"role": role, "count": count, "state_chip": chip(state, style)})
    return rows


def _belongs(finding: Finding, first: Finding) -> bool:
    if finding.cause is not None:
        return finding.cause == first.page
    return finding.page in _ALIKE and (finding.page, finding.urgency) == (first.page, first.urgency)


def _parts(now: int, today: int) -> Iterator[str]:
    if now:
        yield f"{_counted(now)} need{'s' if now == 1 else ''} you now"
    if today:
        yield (
            f"{_word(today)} today"
            if now
            else f"{_counted(today)} need{'s' if today == 1 else ''} you today"
        )


def _counted(count: int) -> str:
    return f"{_word(count)} thing{'' if count == 1 else 's'}"


def _word(count: int) -> str:
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"

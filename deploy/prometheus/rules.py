"""Writes rules.yml: what is recorded of the promises, and when a human is called:
`python -m deploy.prometheus.rules`.

Objectives follow the SRE workbook: an alert fires while both a long and a short window burn the
error budget too fast, and only where enough happened for a share to mean something. Names of
metrics come from the service's own table, so a metric that is gone breaks this script.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from statesvc.api import service_status as status
from statesvc.api.process_checks import DEATHS_MIN
from statesvc.api.status_facts import NOTIFICATION_SECONDS_MAX
from statesvc.health.database_sample import UNSEALED_SECONDS_MAX
from statesvc.spool.spool_state import SPOOL_SECONDS_MAX
from statesvc.telemetry import gauges, names, objectives
from statesvc.telemetry.metric import Instrument, Metric

RULES: Final = Path(__file__).with_name("rules.yml")
CONSOLE: Final = os.environ.get("STATESVC_CONSOLE_URL", "http://localhost:8080").rstrip("/")
# Where the pages can be read: in the console, at the address that the service has for it; or
# where
# RUNBOOK_URL says.
RUNBOOK: Final = (
    os.environ["RUNBOOK_URL"].rstrip("/") + "/{page}.md"
    if "RUNBOOK_URL" in os.environ
    else f"{CONSOLE}/console/runbook/{{page}}"
)


def series(metric: Metric, suffix: str = "") -> str:
    """Return the name under which Prometheus shows the metric."""
    unit = {"s": "_seconds", "By": "_bytes"}.get(metric.unit, "")
    total = (
        "_total" if metric.instrument in {Instrument.COUNTER, Instrument.OBSERVED_COUNTER} else ""
    )
    return metric.name.replace(".", "_") + unit + total + suffix


ACK: Final = series(names.INGEST_ACK_DURATION)
APPLIED: Final = series(names.APPLIED_LAG)
FIRST: Final = series(names.FIRST_ATTEMPT_LAG)
# Causes of refused pushes that are no fault of their sender's.
REFUSED: Final = "|".join(status.CAUSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A promise: `bad` and `all` are counts over a window, `$window` in their text.

    `least`: events in the long window for a share to count.
    """

    name: str
    alert: str
    objective: float
    bad: str
    all: str
    least: int
    hurts: str

    @property
    def budget(self) -> float:
        """The share that may be bad."""
        return round(1 - self.objective, 6)


ANSWERED: Final = 'outcome=~"accepted|duplicate"'
OBJECTIVES: Final = (
    Objective(
        name=objectives.ACK_LATENCY.name,
        alert="AckLatency",
        objective=objectives.ACK_LATENCY.share,
        bad=(
            f"sum(increase({ACK}_count{{{ANSWERED}}}[$window])) -"
            f' sum(increase({ACK}_bucket{{{ANSWERED},le="0.1"}}[$window]))'
        ),
        all=f"sum(increase({ACK}_count{{{ANSWERED}}}[$window]))",
        least=200,
        hurts="Carriers retry what is acknowledged late: slowness makes load.",
    ),
    Objective(
        name=objectives.ACK_AVAILABILITY.name,
        alert="AckAvailability",
        objective=objectives.ACK_AVAILABILITY.share,
        bad=f'sum(increase({ACK}_count{{outcome="error"}}[$window])) or vector(0)',
        all=f'sum(increase({ACK}_count{{outcome!="rejected"}}[$window]))',
        least=200,
        hurts="Carriers get 5xx and push again; some give up after a few days.",
    ),
    Objective(
        name=objectives.LAG.name,
        alert="Lag",
        objective=objectives.LAG.share,
        bad=(
            f"sum(increase({APPLIED}_count[$window])) -"
            f' sum(increase({APPLIED}_bucket{{le="120.0"}}[$window]))'
        ),
        all=f"sum(increase({APPLIED}_count[$window]))",
        least=200,
        hurts="Shipments show yesterday's state; subscribers hear late.",
    ),
    Objective(
        name=objectives.FIRST_ATTEMPT.name,
        alert="FirstAttempt",
        objective=objectives.FIRST_ATTEMPT.share,
        bad=(
            f'sum(increase({FIRST}_count{{state="ready"}}[$window])) -'
            f' sum(increase({FIRST}_bucket{{state="ready",le="10.0"}}[$window]))'
        ),
        all=f'sum(increase({FIRST}_count{{state="ready"}}[$window]))',
        least=100,
        hurts="Subscribers that are well hear of changes late.",
    ),
)
BURNS: Final = (
    ("page", "Fast", "1h", "5m", 14.4),
    ("page", "Medium", "6h", "30m", 6.0),
    ("ticket", "Slow", "3d", "6h", 1.0),
)
WINDOWS: Final = ("5m", "30m", "1h", "6h", "3d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An alert on a cause. `page`: of the runbook, where it differs from the alert's name."""

    alert: str
    when: str
    lasts: str
    severity: str
    summary: str
    page: str = ""


def _s(metric: Metric) -> str:
    return series(metric)


_DEAD_LETTERS: Final = (
    f'max by (kind, cause) ({_s(gauges.DEAD_LETTERS_OPEN)}{{{{kind!="code"}}}}{{past}})'
)
# Messages that became dead letters as a whole, and those of which nothing was read but
# rejections.
_NOT_READ: Final = (
    f"{{0}}({_s(names.MESSAGES_BURIED)}[15m]) or"
    f' {{0}}({_s(names.MESSAGES_SETTLED)}{{{{outcome="rejected"}}}}[15m])'
)

CAUSES: Final = (
    Cause(
        alert="PromiseBroken",
        when=f"max by (promise) ({_s(gauges.PROMISES_MISSING)}) > 0",
        lasts="0m",
        severity="page",
        summary="{{ $value }} of what was promised ({{ $labels.promise }}) is nowhere",
    ),
    Cause(
        alert="ReconcilerBehind",
        when=(
            f'max(max_over_time({_s(gauges.PROMISES_BEHIND)}{{promise="settled"}}[5m])) > 1800 and'
            f' sum(rate({ACK}_count{{outcome="accepted"}}[30m])) > 0'
        ),
        lasts="15m",
        severity="ticket",
        summary=(
            "Nothing has been reconciled for {{ $value | humanizeDuration }}: losses would go"
            " unseen"
        ),
        page="PromiseBroken",
    ),
    Cause(
        alert="RoleDies",
        when=f"max by (type) ({_s(gauges.PROCESSES_DIED)}) >= {DEATHS_MIN}",
        lasts="0m",
        severity="page",
        summary="{{ $labels.type }} died {{ $value }} times within ten minutes",
        page="RoleDown",
    ),
    Cause(
        alert="RoleDown",
        when=(
            f"sum by (type) (max by (type) ({_s(gauges.PROCESSES)})) < 1 or"
            f' absent({_s(gauges.PROCESSES)}{{type="worker"}}) or'
            f' absent({_s(gauges.PROCESSES)}{{type="notifier"}}) or'
            f' absent({_s(gauges.PROCESSES)}{{type="sealer"}})'
        ),
        lasts="2m",
        severity="page",
        summary="No process of role {{ $labels.type }} runs",
    ),
    Cause(
        alert="RoleSilent",
        when=(
            f"min by (type) ({_s(gauges.ROLE_ANSWERS)}) < 1 or max by (type)"
            f" ({_s(gauges.PROCESSES_SILENT)}) > 0"
        ),
        lasts="0m",
        severity="page",
        summary="A process of role {{ $labels.type }} does not answer: frozen, killed, or cut off",
        page="RoleDown",
    ),
    Cause(
        alert="TargetDown",
        when='up{job="statesvc"} == 0',
        # a restart takes less
        lasts="5s",
        severity="page",
        summary="{{ $labels.instance }} does not answer scrapes",
        page="RoleDown",
    ),
    Cause(
        alert="InboxBacklog",
        when=f"max by (carrier) ({_s(gauges.INBOX_OLDEST_READY)}) > {status.READY_SECONDS_MAX:g}",
        lasts="2m",
        severity="page",
        summary=(
            "The oldest message of {{ $labels.carrier }} has been ready for {{ $value |"
            " humanizeDuration }}; the promise is 2 minutes"
        ),
        page="Lag",
    ),
    Cause(
        alert="CarrierSilent",
        when=f"(time() - max by (carrier) ({_s(gauges.INGEST_LAST_PUSH)}) > 4 * 3600)"
        " and on (carrier) (sum by (carrier)"
        f' (increase({ACK}_count{{outcome=~"accepted|duplicate"}}[4h] offset 1d)) > 50)',
        lasts="10m",
        severity="ticket",
        summary=(
            "{{ $labels.carrier }} pushed nothing for {{ $value | humanizeDuration }}, and pushed"
            " plenty at this time yesterday"
        ),
    ),
    Cause(
        alert="CarrierHeld",
        when=f"max by (carrier) ({_s(gauges.INBOX_OLDEST_HELD)}) > {status.HELD_SECONDS_MAX:g}",
        lasts="5m",
        severity="ticket",
        summary=(
            "{{ $labels.carrier }} is on hold, the first message for {{ $value |"
            " humanizeDuration }}"
        ),
    ),
    Cause(
        alert="SignaturesRefused",
        when=(
            f'sum by (carrier) (rate({ACK}_count{{outcome="rejected"}}[15m])) / sum by (carrier)'
            f" (rate({ACK}_count[15m])) > 0.5 and sum by (carrier) (increase({ACK}_count[15m]))"
            " > 20"
        ),
        lasts="5m",
        severity="page",
        summary=(
            "{{ $value | humanizePercentage }} of what {{ $labels.carrier }} pushes is refused: a"
            " secret was changed?"
        ),
    ),
    Cause(
        alert="PushesRefused",
        when=(
            f'sum by (cause) (increase({_s(names.REFUSALS)}{{cause=~"{REFUSED}"}}[90s])) / on ()'
            f' group_left () sum(increase({ACK}_count{{outcome!="rejected"}}[90s])) > 0.01'
        ),
        lasts="0m",
        severity="page",
        summary=(
            "{{ $value | humanizePercentage }} of the pushes of the last minute were not"
            " acknowledged: {{ $labels.cause }}"
        ),
        page="AckAvailability",
    ),
    Cause(
        alert="SpoolWaits",
        when=f"max({_s(gauges.SPOOL_OLDEST)}) > {SPOOL_SECONDS_MAX:g}",
        lasts="0m",
        severity="page",
        summary=(
            "Acknowledged messages have waited {{ $value | humanizeDuration }} in the spool:"
            " the database does not take them"
        ),
    ),
    Cause(
        alert="StorageLow",
        when=f"max({_s(gauges.INGEST_STORAGE_LOW)}) > 0",
        lasts="0m",
        severity="page",
        summary="The database's disk is at its bound: every push is refused",
        page="DiskFilling",
    ),
    Cause(
        alert="Overloaded",
        when=f'sum by (cause) (rate({_s(names.REFUSALS)}{{cause="connections"}}[5m])) > 0.1',
        lasts="5m",
        severity="page",
        summary="Clients are refused: {{ $labels.cause }}",
        page="AckAvailability",
    ),
    Cause(
        alert="FormatChanged",
        when=(
            f"sum by (carrier) ({_NOT_READ.format('rate')}) / sum by (carrier)"
            f" (rate({_s(names.MESSAGES_CLAIMED)}[15m])) > 0.05 and sum by (carrier)"
            f" ({_NOT_READ.format('increase')}) > 10"
        ),
        lasts="5m",
        severity="page",
        summary=(
            "{{ $value | humanizePercentage }} of the messages of {{ $labels.carrier }} become dead"
            " letters"
        ),
    ),
    Cause(
        alert="UnmappedCodes",
        when=(
            f"sum by (carrier) (rate({_s(names.EVENTS_UNMAPPED)}[1h])) / sum by (carrier)"
            f' (rate({_s(names.EVENTS)}{{verdict="appended"}}[1h])) > 0.05 and sum by (carrier)'
            f" (increase({_s(names.EVENTS_UNMAPPED)}[1h])) > 20"
        ),
        lasts="15m",
        severity="ticket",
        summary=(
            "{{ $value | humanizePercentage }} of the events of {{ $labels.carrier }} have codes"
            " that no table knows"
        ),
        page="FormatChanged",
    ),
    Cause(
        alert="DeadLettersGrow",
        # a cause that had none has no series either
        when=(
            f"{_DEAD_LETTERS.format(past='')} - ({_DEAD_LETTERS.format(past=' offset 1h')} or"
            f" {_DEAD_LETTERS.format(past='')} * 0) > 50"
        ),
        lasts="5m",
        severity="ticket",
        summary=(
            "{{ $value }} dead letters more than an hour ago: {{ $labels.kind }}, {{"
            " $labels.cause }}"
        ),
    ),
    Cause(
        alert="SubscriberFailing",
        when=f'max({_s(gauges.SUBSCRIPTIONS_FAILING)}{{state="failing"}}) > 0',
        lasts="10m",
        severity="ticket",
        summary="{{ $value }} subscriptions take nothing: every try fails",
    ),
    Cause(
        alert="SubscriberBacklog",
        when=(
            f"max by (subscription) ({_s(gauges.OUTBOX_OLDEST_READY)}) >"
            f" {NOTIFICATION_SECONDS_MAX:g}"
        ),
        lasts="5m",
        severity="ticket",
        summary=(
            "Notifications wait {{ $value | humanizeDuration }} for subscription {{"
            " $labels.subscription }}"
        ),
        page="SubscriberFailing",
    ),
    Cause(
        alert="SealerStopped",
        when=f"max({_s(gauges.OLDEST_UNSEALED)}) > {UNSEALED_SECONDS_MAX:g}",
        lasts="2m",
        severity="page",
        summary=(
            "Entries of the log have waited {{ $value | humanizeDuration }} to be sealed: no feed,"
            " no proofs"
        ),
    ),
    Cause(
        alert="SealerRefuses",
        when=f"max({_s(gauges.SEALER_REFUSES)}) > 0",
        lasts="0m",
        severity="page",
        summary=(
            "The log is not the one that was published; nobody is notified until a human has"
            " resolved it"
        ),
    ),
    Cause(
        alert="ClocksDiffer",
        when=f"max(abs({_s(gauges.CLOCK_OFFSET)})) > 2",
        lasts="2m",
        severity="ticket",
        summary=(
            "The clocks of the database and of the sealer differ by {{ $value | humanizeDuration"
            " }}; at 5 s sealing stops"
        ),
    ),
    Cause(
        alert="ListenerDown",
        when=f"min by (instance, role) ({_s(gauges.LISTENER_UP)}) < 1",
        lasts="5m",
        severity="ticket",
        summary="{{ $labels.role }} of {{ $labels.instance }} hears no wake-ups and polls",
    ),
    Cause(
        alert="PoolExhausted",
        when=f"min_over_time({_s(gauges.POOL_WAITING)}[5m]) > 0",
        lasts="0m",
        severity="ticket",
        summary=(
            "{{ $labels.role }} of {{ $labels.instance }}: requests have waited for a connection of"
            " pool {{ $labels.pool }} for five minutes"
        ),
    ),
    Cause(
        alert="EventLoopLate",
        when=(
            "histogram_quantile(0.99, sum by (instance, role, le)"
            f" (rate({_s(names.LOOP_LAG)}_bucket[5m]))) > 0.25"
        ),
        lasts="5m",
        severity="ticket",
        summary=(
            "The event loop of {{ $labels.role }} at {{ $labels.instance }} is late by {{ $value |"
            " humanizeDuration }}: too little processor"
        ),
    ),
    Cause(
        alert="PartitionHorizon",
        when=f"min({_s(gauges.PARTITION_HORIZON)}) < {status.HORIZON_SECONDS_MIN:g}",
        lasts="10m",
        severity="page",
        summary=(
            "In {{ $value | humanizeDuration }} a table has no partition left, and every append"
            " stops"
        ),
    ),
    Cause(
        alert="NotifyQueue",
        when=f"max({_s(gauges.NOTIFY_QUEUE)}) > {status.NOTIFY_QUEUE_SHARE_MAX:g}",
        lasts="1m",
        severity="ticket",
        summary=(
            "The NOTIFY queue of the PostgreSQL server is {{ $value | humanizePercentage }} full: a"
            " session in a transaction holds it"
        ),
    ),
    Cause(
        alert="OldTransaction",
        when=f"max({_s(gauges.OLDEST_TRANSACTION)}) > {status.TRANSACTION_SECONDS_MAX:g}",
        lasts="5m",
        severity="ticket",
        summary=(
            "A transaction has been open for {{ $value | humanizeDuration }}: dead rows pile up,"
            " queues get slow"
        ),
    ),
    Cause(
        alert="DiskFilling",
        when=(
            f"predict_linear({_s(gauges.DISK_FREE)}[6h], 86400) < 0 or {_s(gauges.DISK_FREE)} < 5e9"
        ),
        lasts="15m",
        severity="page",
        summary=(
            "The disk of {{ $labels.volume }} is full within a day at its pace of the last hours,"
            " or has less than 5 GB left"
        ),
    ),
)


def rules() -> dict[str, Any]:
    return {
        "groups": [
            *(_objective(one) for one in OBJECTIVES),
            {"name": "statesvc_causes", "rules": [_cause(one) for one in CAUSES]},
        ]
    }


def _objective(one: Objective) -> dict[str, Any]:
    recorded = [
        {
            "record": f"statesvc:{one.name}:bad_ratio_{window}",
            "expr": f"(({one.bad}) / ({one.all} > 0)) or vector(0)".replace("$window", window),
        }
        for window in WINDOWS
    ]
    budget = {
        "record": f"statesvc:{one.name}:budget_left",
        "expr": f"1 - statesvc:{one.name}:bad_ratio_3d / {one.budget:g}",
    }
    alerts = [
        {
            "alert": f"{one.alert}Burns{speed}",
            "expr": (
                f"statesvc:{one.name}:bad_ratio_{long} > {burn:g} * {one.budget:g}"
                f" and statesvc:{one.name}:bad_ratio_{short} > {burn:g} * {one.budget:g}"
                f" and ({one.all}) > {one.least}".replace("$window", long)
            ),
            "for": "1m",
            "labels": {"severity": severity},
            "annotations": {
                "summary": (
                    "{{ $value | humanizePercentage }} miss the promise, which"
                    f" {one.objective * 100:g} % are to hold"
                ),
                "description": one.hurts,
                "runbook_url": RUNBOOK.format(page=one.alert),
            },
        }
        for severity, speed, long, short, burn in BURNS
    ]
    return {"name": f"statesvc_{one.name}", "rules": [*recorded, budget, *alerts]}


def _cause(one: Cause) -> dict[str, Any]:
    return {
        "alert": one.alert,
        "expr": one.when,
        "for": one.lasts,
        "labels": {"severity": one.severity},
        "annotations": {
            "summary": one.summary,
            "runbook_url": RUNBOOK.format(page=one.page or one.alert),
        },
    }


def text() -> str:
    head = "# written by python -m deploy.prometheus.rules; change rules.py instead\n"
    return head + str(yaml.safe_dump(rules(), sort_keys=False, width=10_000, allow_unicode=True))


if __name__ == "__main__":
    RULES.write_text(text(), "utf-8")

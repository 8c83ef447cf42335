"""Writes the dashboards of Grafana: `python -m deploy.grafana.dashboards`.

A panel is a title, a unit and queries; the names of metrics come from the service's own table.
`panels` are the same queries for the test that runs each of them against a real Prometheus.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deploy.prometheus.rules import ACK, OBJECTIVES, series
from statesvc.telemetry import gauges, names
from statesvc.telemetry.metric import Metric

FOLDER: Final = Path(__file__).parent
_WIDTH: Final = 24
_HEIGHT: Final = 8
_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}


@dataclass(frozen=True, slots=True)
class Query:
    """`legend` in Grafana's form: `{{carrier}}`."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """`unit` is Grafana's name of it (s, bytes, short, percentunit, reqps, cps: counts a second).

    `kind`: timeseries or stat.
    """

    title: str
    unit: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"
    width: int = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """One file."""

    uid: str
    title: str
    panels: tuple[Panel, ...]


def quantiles(metric: Metric, *shares: float, by: str = "") -> tuple[Query, ...]:
    """Build the queries of a histogram's quantiles."""
    name, label = series(metric), f", {by}" if by else ""
    return tuple(
        Query(
            f"histogram_quantile({share}, sum by (le{label})"
            f" (rate({name}_bucket[$__rate_interval])))",
            f"{_legend('', by)} p{share * 100:g}".lstrip(),
        )
        for share in shares
    )


def rate(metric: Metric, by: str, matching: str = "", *, what: str = "") -> Query:
    """Build the query of a counter's rate per second.

    `what`: its part of the legend, where a panel has other queries.
    """
    return Query(
        f"sum by ({by}) (rate({series(metric)}{matching}[$__rate_interval]))", _legend(what, by)
    )


def gauge(metric: Metric, by: str = "", *, what: str = "") -> Query:
    """Build the query of a gauge that several processes report alike."""
    return Query(
        f"max by ({by}) ({series(metric)})" if by else f"max({series(metric)})", _legend(what, by)
    )


def _legend(what: str, by: str) -> str:
    labels = (f"{{{{{each.strip()}}}}}" for each in by.split(",") if each)
    return " ".join([what, *labels] if what else labels)


DASHBOARDS: Final = (
    Dashboard(
        uid="statesvc-promises",
        title="statesvc: promises",
        panels=(
            *(
                Panel(
                    title=f"{one.name.replace('_', ' ')}: budget left (3 d)",
                    unit="percentunit",
                    kind="stat",
                    width=6,
                    queries=(
                        Query(
                            f"1 - (({one.bad}) / ({one.all} > 0) or vector(0)) /"
                            f" {one.budget:g}".replace("$window", "3d")
                        ),
                    ),
                )
                for one in OBJECTIVES
            ),
            Panel(
                title="ACKs within 100 ms",
                unit="percentunit",
                queries=(
                    Query(
                        f'sum(rate({ACK}_bucket{{outcome=~"accepted|duplicate",'
                        f'le="0.1"}}[$__rate_interval]))'
                        f' / sum(rate({ACK}_count{{outcome=~"accepted|'
                        f'duplicate"}}[$__rate_interval]))',
                        "share",
                    ),
                ),
            ),
            Panel(title="ACK", unit="s", queries=quantiles(names.INGEST_ACK_DURATION, 0.5, 0.99)),
            Panel(
                title="ACK to applied", unit="s", queries=quantiles(names.APPLIED_LAG, 0.5, 0.99)
            ),
            Panel(
                title="Change to first attempt",
                unit="s",
                queries=quantiles(names.FIRST_ATTEMPT_LAG, 0.5, 0.99, by="state"),
            ),
            Panel(
                title="ACK to delivered",
                unit="s",
                queries=quantiles(names.DELIVERED_LAG, 0.5, 0.99),
            ),
            Panel(
                title="Missing (must be 0)",
                unit="short",
                kind="stat",
                queries=(gauge(gauges.PROMISES_MISSING, "promise"),),
            ),
            Panel(
                title="Compared, and still waiting",
                unit="short",
                queries=(
                    gauge(gauges.PROMISES_EXPECTED, "promise", what="compared"),
                    gauge(gauges.PROMISES_WAITING, "promise", what="waiting"),
                ),
            ),
        ),
    ),
    Dashboard(
        uid="statesvc-carriers",
        title="statesvc: carriers",
        panels=(
            Panel(
                title="Pushes by outcome",
                unit="reqps",
                queries=(
                    Query(f"sum by (outcome) (rate({ACK}_count[$__rate_interval]))", "{{outcome}}"),
                ),
            ),
            Panel(
                title="Pushes by carrier",
                unit="reqps",
                queries=(
                    Query(f"sum by (carrier) (rate({ACK}_count[$__rate_interval]))", "{{carrier}}"),
                ),
            ),
            Panel(
                title="Since the last push",
                unit="s",
                queries=(
                    Query(
                        f"time() - max by (carrier) ({series(gauges.INGEST_LAST_PUSH)})",
                        "{{carrier}}",
                    ),
                ),
            ),
            Panel(
                title="Share that is pushed again",
                unit="percentunit",
                queries=(
                    Query(
                        "sum by (carrier)"
                        f" (rate({series(names.INGEST_DUPLICATES)}[$__rate_interval])) / sum by"
                        f" (carrier) (rate({ACK}_count[$__rate_interval]))",
                        "{{carrier}}",
                    ),
                ),
            ),
            Panel(title="Refused", unit="reqps", queries=(rate(names.REFUSALS, "cause"),)),
            Panel(
                title="Problems answered",
                unit="reqps",
                queries=(rate(names.API_PROBLEMS, "cause"),),
            ),
            Panel(
                title="Dead letters made",
                unit="cps",
                queries=(rate(names.MESSAGES_BURIED, "carrier, cause"),),
            ),
            Panel(
                title="Events without a known code",
                unit="cps",
                queries=(rate(names.EVENTS_UNMAPPED, "carrier"),),
            ),
            Panel(title="Events by verdict", unit="cps", queries=(rate(names.EVENTS, "verdict"),)),
            Panel(
                title="Moves that contradict",
                unit="cps",
                queries=(rate(names.MOVES_CONTRADICTED, "carrier, flag"),),
            ),
        ),
    ),
    Dashboard(
        uid="statesvc-queue",
        title="statesvc: queue and workers",
        panels=(
            Panel(
                title="Ready",
                unit="short",
                queries=(
                    Query(
                        f'max by (carrier) ({series(gauges.INBOX_DEPTH)}{{state="ready"}})',
                        "{{carrier}}",
                    ),
                ),
            ),
            Panel(
                title="Oldest ready",
                unit="s",
                queries=(gauge(gauges.INBOX_OLDEST_READY, "carrier"),),
            ),
            Panel(
                title="Held, scheduled, leased",
                unit="short",
                queries=(
                    Query(
                        "sum by (state) (max by (carrier, state)"
                        f' ({series(gauges.INBOX_DEPTH)}{{state!="ready"}}))',
                        "{{state}}",
                    ),
                ),
            ),
            Panel(
                title="ACK to first claim", unit="s", queries=quantiles(names.PICKUP_LAG, 0.5, 0.99)
            ),
            Panel(title="Settled", unit="cps", queries=(rate(names.MESSAGES_SETTLED, "carrier"),)),
            Panel(
                title="Attempts beyond the first",
                unit="cps",
                queries=(rate(names.MESSAGE_ATTEMPTS, "attempt", '{attempt!="1"}'),),
            ),
            Panel(
                title="Retried, postponed, taken over",
                unit="cps",
                queries=(
                    rate(names.MESSAGES_RETRIED, "carrier", what="retried"),
                    rate(names.MESSAGES_POSTPONED, "carrier", what="postponed"),
                    rate(names.MESSAGES_RESCUED, "carrier", what="taken over"),
                ),
            ),
            Panel(
                title="Stages of a batch, p99",
                unit="s",
                queries=quantiles(names.STAGE_DURATION, 0.99, by="stage"),
            ),
            Panel(
                title="Claims by how much they found",
                unit="cps",
                queries=(rate(names.CLAIMS, "queue, fill"),),
            ),
            Panel(
                title="Processes",
                unit="short",
                kind="stat",
                queries=(gauge(gauges.PROCESSES, "type"),),
            ),
            Panel(
                title="Died within ten minutes",
                unit="short",
                kind="stat",
                queries=(gauge(gauges.PROCESSES_DIED, "type"),),
            ),
            Panel(
                title="Open dead letters",
                unit="short",
                queries=(gauge(gauges.DEAD_LETTERS_OPEN, "kind, cause"),),
            ),
            Panel(
                title="Event loops, p99 late",
                unit="s",
                queries=quantiles(names.LOOP_LAG, 0.99, by="instance, role"),
            ),
        ),
    ),
    Dashboard(
        uid="statesvc-fan-out",
        title="statesvc: fan-out and limiter",
        panels=(
            Panel(
                title="Notifications written",
                unit="cps",
                queries=(
                    Query(
                        f"sum(rate({series(names.NOTIFICATIONS_WRITTEN)}[$__rate_interval]))",
                        "written",
                    ),
                ),
            ),
            Panel(
                title="Tries by outcome",
                unit="reqps",
                queries=(rate(names.NOTIFICATION_ATTEMPTS, "outcome"),),
            ),
            Panel(
                title="How long a try takes",
                unit="s",
                queries=quantiles(names.DELIVERY_DURATION, 0.5, 0.99),
            ),
            Panel(title="Outbox", unit="short", queries=(gauge(gauges.OUTBOX_DEPTH, "state"),)),
            Panel(
                title="Oldest ready, the twenty with the most waiting",
                unit="s",
                queries=(gauge(gauges.OUTBOX_OLDEST_READY, "subscription"),),
            ),
            Panel(
                title="Waiting, the same twenty",
                unit="short",
                queries=(gauge(gauges.OUTBOX_WAITING, "subscription"),),
            ),
            Panel(
                title="Limit and in flight, the same twenty",
                unit="short",
                queries=(
                    gauge(gauges.LIMITER_LIMIT, "subscription", what="limit"),
                    gauge(gauges.LIMITER_IN_FLIGHT, "subscription", what="in flight"),
                ),
            ),
            Panel(
                title="Breakers",
                unit="short",
                queries=(
                    Query(f"sum by (state) ({series(gauges.LIMITER_SUBSCRIPTIONS)})", "{{state}}"),
                ),
            ),
            Panel(
                title="Permits",
                unit="short",
                queries=(Query(f"sum by (state) ({series(gauges.LIMITER_PERMITS)})", "{{state}}"),),
            ),
            Panel(
                title="In flight",
                unit="short",
                queries=(Query(f"sum({series(gauges.DELIVERIES_IN_FLIGHT)})", "in flight"),),
            ),
            Panel(
                title="Failing and disabled",
                unit="short",
                kind="stat",
                queries=(gauge(gauges.SUBSCRIPTIONS_FAILING, "state"),),
            ),
            Panel(
                title="Left out because too much waited",
                unit="cps",
                queries=(
                    Query(
                        f"sum(rate({series(names.NOTIFICATIONS_COALESCED)}[$__rate_interval]))",
                        "coalesced",
                    ),
                ),
            ),
        ),
    ),
    Dashboard(
        uid="statesvc-log",
        title="statesvc: log and PostgreSQL",
        panels=(
            Panel(
                title="Entries sealed",
                unit="cps",
                queries=(
                    Query(
                        f"sum(rate({series(names.SEALED_ENTRIES)}[$__rate_interval]))", "entries"
                    ),
                ),
            ),
            Panel(
                title="Recorded to sealed",
                unit="s",
                queries=quantiles(names.SEALING_LAG, 0.5, 0.99),
            ),
            Panel(
                title="Oldest unsealed",
                unit="s",
                queries=(gauge(gauges.OLDEST_UNSEALED, what="waits"),),
            ),
            Panel(
                title="Sealers that lead, that refuse",
                unit="short",
                kind="stat",
                queries=(
                    Query(f"sum({series(gauges.SEALER_LEADS)})", "lead"),
                    Query(f"sum({series(gauges.SEALER_REFUSES)})", "refuse"),
                ),
            ),
            Panel(
                title="Clocks: database ahead",
                unit="s",
                queries=(gauge(gauges.CLOCK_OFFSET, what="ahead"),),
            ),
            Panel(
                title="Stream clients",
                unit="short",
                queries=(Query(f"sum by (state) ({series(gauges.STREAM_CLIENTS)})", "{{state}}"),),
            ),
            Panel(
                title="Database", unit="bytes", queries=(gauge(gauges.DATABASE_SIZE, what="size"),)
            ),
            Panel(
                title="Write-ahead log",
                unit="Bps",
                queries=(
                    Query(f"max(rate({series(gauges.DATABASE_WAL)}[$__rate_interval]))", "written"),
                ),
            ),
            Panel(title="Free on disk", unit="bytes", queries=(gauge(gauges.DISK_FREE, "volume"),)),
            Panel(
                title="Until a partition is missing",
                unit="s",
                queries=(gauge(gauges.PARTITION_HORIZON, what="horizon"),),
            ),
            Panel(
                title="Oldest transaction",
                unit="s",
                queries=(gauge(gauges.OLDEST_TRANSACTION, what="age"),),
            ),
            Panel(
                title="NOTIFY queue of the server",
                unit="percentunit",
                queries=(gauge(gauges.NOTIFY_QUEUE, what="full"),),
            ),
            Panel(
                title="Connections in use, of those a pool may have",
                unit="percentunit",
                queries=(
                    Query(
                        f'sum by (pool) ({series(gauges.POOL_CONNECTIONS)}{{state="used"}}) / sum'
                        f' by (pool) ({series(gauges.POOL_CONNECTIONS)}{{state="max"}})',
                        "{{pool}}",
                    ),
                ),
            ),
            Panel(
                title="Waiting for a connection",
                unit="short",
                queries=(Query(f"sum by (pool) ({series(gauges.POOL_WAITING)})", "{{pool}}"),),
            ),
            Panel(
                title="Listeners up",
                unit="short",
                kind="stat",
                queries=(Query(f"sum({series(gauges.LISTENER_UP)})", "up"),),
            ),
        ),
    ),
)


def panels() -> Iterator[tuple[Dashboard, Panel]]:
    """Iterate over all panels with their dashboards."""
    return ((dashboard, panel) for dashboard in DASHBOARDS for panel in dashboard.panels)


def document(dashboard: Dashboard) -> dict[str, Any]:
    """Build the document that Grafana imports."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["statesvc"],
        "schemaVersion": 39,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "source",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                }
            ]
        },
        "panels": list(_placed(dashboard.panels)),
    }


def _placed(shown: Sequence[Panel]) -> Iterator[dict[str, Any]]:
    x = y = 0
    for number, panel in enumerate(shown, 1):
        if x + panel.width > _WIDTH:
            x, y = 0, y + _HEIGHT
        yield {
            "id": number,
            "title": panel.title,
            "type": panel.kind,
            "datasource": _SOURCE,
            "gridPos": {"x": x, "y": y, "w": panel.width, "h": _HEIGHT},
            "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
            "targets": [
                {
                    "refId": chr(ord("A") + place),
                    "datasource": _SOURCE,
                    "expr": query.expression,
                    "legendFormat": query.legend or "__auto",
                }
                for place, query in enumerate(panel.queries)
            ],
        }
        x += panel.width


def text(dashboard: Dashboard) -> str:
    return json.dumps(document(dashboard), indent=1) + "\n"


if __name__ == "__main__":
    for one in DASHBOARDS:
        (FOLDER / f"{one.uid}.json").write_text(text(one), "utf-8")

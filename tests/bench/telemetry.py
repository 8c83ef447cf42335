"""Costs of metrics and spans: the same drain with OpenTelemetry on and off, in turn, by
processor time of the worker.

Off is its own switch, OTEL_SDK_DISABLED. On: all metrics, which are always collected, and spans,
sampled as ever, sent by OTLP to a collector on this machine, whose time is not counted.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from statistics import median
from typing import Final

from tests.bench.bench import Bench, rotated
from tests.bench.cost import drain_cost
from tests.bench.inbox import waiting
from tests.bench.report import Row, rate
from tests.bench.traffic import alerts
from tests.world.collector import collecting

SHARE_MAX: Final = 0.05
TURNS: Final = 3
"""Times the runs of the scale: shares of a few percent need more than a rate does."""


async def measure(bench: Bench) -> list[Row]:
    template = await bench.server.filled(
        "bench_alerts", waiting(partial(alerts, bench.scale.alerts))
    )
    seen: dict[str, list[float]] = defaultdict(list)
    async with collecting() as collector:
        ways: Mapping[str, dict[str, str]] = {
            "off": {"OTEL_SDK_DISABLED": "true"},
            "metrics": {},
            "metrics and spans": {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
        }
        for turn in range(TURNS * bench.scale.runs):
            for way in rotated(list(ways), turn):
                cost = await drain_cost(bench, template, seals=False, settings=ways[way])
                seen[way].append(cost.worker + cost.server)
                bench.say(
                    f"telemetry {turn + 1}, {way}: {cost.worker:.1f} us of the worker,"
                    f" {cost.server:.1f} of the server"
                )
    off = median(seen["off"])
    return [
        Row("processor of worker and server for an alert, telemetry off", rate(seen["off"], " us")),
        *(_against(way, seen[way], off) for way in ("metrics", "metrics and spans")),
    ]


def _against(way: str, costs: list[float], off: float) -> Row:
    more = median(costs) / off - 1
    return Row(
        f"... {way}",
        f"{rate(costs, ' us')}, {more:+.1%}",
        f"<= {SHARE_MAX:.0%} more",
        more <= SHARE_MAX,
    )

"""What it costs to expect something of every shipment: processor of worker and server for an event, with rules and without, in turn.

Both databases hold the same 100,000 unfinished shipments of others; with rules they are armed, and so is each that an event moves.
"""

from functools import partial
from statistics import median
from typing import Final

from tests.bench.bench import Bench
from tests.bench.cost import drain_cost
from tests.bench.inbox import waiting
from tests.bench.promises import shipments
from tests.bench.report import Row, rate
from tests.bench.traffic import alerts

ARMED: Final = 100_000
BAR_PERCENT: Final = 3.0
_NOTHING: Final = (
    '{"stalled": {"picked_up": null, "in_transit": null, "exception": null, "out_for_delivery": null, "delivery_attempted": null,'
    ' "returning": null}, "not_picked_up": null, "overdue": null, "delivery_missed": null, "pickup_expiring": null}'
)
_WITHOUT: Final = (
    "UPDATE statesvc.shipment SET due_at = NULL",
    f"INSERT INTO statesvc.expectation_rules VALUES ('*', 1, '{_NOTHING}', now(), 'bench', 'bench', NULL, NULL)",
    "VACUUM FULL statesvc.shipment",
)
_WITH: Final = ("VACUUM FULL statesvc.shipment",)


async def measure(bench: Bench) -> list[Row]:
    """The rows of this part."""
    template = await bench.server.filled("bench_alerts", waiting(partial(alerts, bench.scale.alerts)))
    runs: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(bench.scale.runs):
        for armed in (True, False) if turn % 2 else (False, True):
            altered = (shipments(ARMED, one_under_way_in=1), *(_WITH if armed else _WITHOUT))
            cost = await drain_cost(bench, template, seals=False, altered=altered)
            runs[armed].append(cost.worker + cost.server)
            bench.say(f"expectations {turn + 1}, {'with' if armed else 'without'}: {runs[armed][-1]:.1f} us of worker and server an event")
    more = (median(runs[True]) / median(runs[False]) - 1) * 100
    return [
        Row("processor of an event, nothing expected", rate(runs[False], " us")),
        Row(f"... by the default rules, {ARMED:,} armed", rate(runs[True], " us")),
        Row("... more", f"{more:+.1f} %", f"<= {BAR_PERCENT} %", more <= BAR_PERCENT),
    ]

"""Costs of expecting something of every shipment: processor of the worker's code and its
connections, batch by batch in turn.

Both databases hold the same 100,000 unfinished shipments of others; with rules they are armed, and
so is each that an event moves.
"""

from functools import partial
from statistics import median
from typing import Final

from tests.bench.bench import Bench, child
from tests.bench.inbox import RELEASE, waiting
from tests.bench.promises import shipments
from tests.bench.report import Row, rate
from tests.bench.traffic import alerts

ARMED: Final = 100_000
BATCH: Final = 128
WARMING: Final = 20
PAIRS: Final = 100
BAR_PERCENT: Final = 3.0
_NOTHING: Final = (
    '{"stalled": {"picked_up": null, "in_transit": null, "exception": null, "out_for_delivery":'
    ' null, "delivery_attempted": null, "returning": null}, "not_picked_up": null, "overdue": null,'
    ' "delivery_missed": null, "pickup_expiring": null}'
)
_WITHOUT: Final = (
    "UPDATE statesvc.shipment SET due_at = NULL",
    (
        "INSERT INTO statesvc.expectation_rules (carrier_id, revision, rules, changed_at,"
        f" changed_by, why) VALUES ('*', 1, '{_NOTHING}', now(), 'bench', 'bench')"
    ),
)
_READY: Final = ("VACUUM FULL ANALYZE statesvc.shipment", "CHECKPOINT", *RELEASE)


async def measure(bench: Bench) -> list[Row]:
    template = await bench.server.filled(
        "bench_expectations", waiting(partial(alerts, (WARMING + PAIRS) * BATCH))
    )
    armed: list[float] = []
    unarmed: list[float] = []
    percent: list[float] = []
    others = shipments(ARMED, one_under_way_in=1)
    for run in range(bench.scale.runs):
        async with bench.server.database(template) as one, bench.server.database(template) as other:
            await one.execute(others, *_READY)
            await other.execute(others, *_WITHOUT, *_READY)
            seen = await child("expectation_steps", one.service, other.service)
        armed.append(seen["armed"])
        unarmed.append(seen["unarmed"])
        percent.append(seen["percent"])
        bench.say(
            f"expectations {run + 1}: {armed[-1]:.1f} us an event with rules, {unarmed[-1]:.1f}"
            f" without, {percent[-1]:+.2f} %"
        )
    return [
        Row("processor of an event, nothing expected", rate(unarmed, " us")),
        Row(f"... by the default rules, {ARMED:,} armed", rate(armed, " us")),
        Row(
            "... more, median of pairs of batches",
            f"{median(percent):+.2f} % ({min(percent):+.2f} .. {max(percent):+.2f})",
            f"<= {BAR_PERCENT} %",
            median(percent) <= BAR_PERCENT,
        ),
    ]

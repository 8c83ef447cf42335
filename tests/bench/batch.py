"""Costs of a batch whatever is in it, and of each message of it: processor of claim,
read, append and settle.
"""

from functools import partial
from statistics import median
from typing import Any, Final

from tests.bench.bench import Bench, child
from tests.bench.inbox import RELEASE, waiting
from tests.bench.report import Row, milliseconds, rate
from tests.bench.traffic import alerts

LARGE: Final = 128
BATCHES: Final = 200
"""Batches of one message, after as many to warm up; and a tenth as many of `LARGE`."""


async def measure(bench: Bench) -> list[Row]:
    template = await bench.server.filled(
        "bench_batches", waiting(partial(alerts, 2 * BATCHES + (BATCHES // 10) * LARGE))
    )
    totals, parts, each_totals, each_parts = [], [], [], []
    for run in range(bench.scale.runs):
        async with bench.server.database(template) as place:
            await place.execute(*RELEASE)
            seen = await child("batch_steps", place.service)
        each = {step: (large - small) / (LARGE - 1) for step, (small, large) in seen.items()}
        fixed = {step: small - each[step] for step, (small, _) in seen.items()}
        totals.append(sum(fixed.values()))
        parts.append(fixed)
        each_totals.append(sum(each.values()) * 1e6)
        each_parts.append(each)
        bench.say(
            f"batch {run + 1}: {totals[-1] * 1e3:.2f} ms ({_parts(fixed, 1e3)}); a message"
            f" {_parts(each, 1e6)} us"
        )
    return [
        Row(
            "fixed cost of a batch, processor of worker and server",
            f"{milliseconds(totals)}: {_parts(parts[-1], 1e3)}",
            "<= 2 ms",
            median(totals) <= 0.002,
        ),
        Row(
            "... and of each message of one scan in it",
            f"{rate(each_totals, ' us')}: {_parts(each_parts[-1], 1e6)}",
        ),
    ]


def _parts(steps: dict[str, Any], unit: float) -> str:
    return ", ".join(f"{step} {seconds * unit:.3g}" for step, seconds in steps.items())

"""What a batch costs whatever is in it: claim, read, append and settle of one message, without what a message more costs."""

from functools import partial
from typing import Any, Final

from tests.bench.bench import Bench, child
from tests.bench.inbox import RELEASE, waiting
from tests.bench.report import Row, milliseconds
from tests.bench.traffic import alerts

LARGE: Final = 128
BATCHES: Final = 200
"""Of one message, after as many to warm up; and a tenth as many of `LARGE`."""


async def measure(bench: Bench) -> list[Row]:
    """The rows of this part."""
    template = await bench.server.filled("bench_batches", waiting(partial(alerts, 2 * BATCHES + (BATCHES // 10) * LARGE)))
    totals, parts = [], []
    for run in range(bench.scale.runs):
        async with bench.server.database(template) as place:
            await place.execute(*RELEASE)
            seen = await child("batch_steps", place.service)
        fixed = {step: small - (large - small) / (LARGE - 1) for step, (small, large) in seen.items()}
        totals.append(sum(fixed.values()))
        parts.append(fixed)
        bench.say(f"batch {run + 1}: {totals[-1] * 1e3:.2f} ms ({_parts(fixed)})")
    return [
        Row(
            "fixed cost of a batch, processor of worker and server",
            f"{milliseconds(totals)}: {_parts(parts[-1])}",
            "<= 2 ms",
            min(totals) <= 0.002,
        )
    ]


def _parts(fixed: dict[str, Any]) -> str:
    return ", ".join(f"{step} {seconds * 1e3:.2f}" for step, seconds in fixed.items())

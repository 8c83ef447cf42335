"""From the ACK to the first answer of the API that knows: 20 samples a second beside the load."""

from statistics import median

from tests.acceptance.processes import BOOTSTRAP_KEY
from tests.bench.bench import Bench, child
from tests.bench.report import Row, milliseconds, percentile

_WIRES = 256


async def measure(bench: Bench) -> list[Row]:
    """The rows of this part."""
    scale = bench.scale
    p50, p99, worst, samples = [], [], [], 0
    for run in range(scale.runs):
        async with bench.server.database() as place, bench.service(place) as service:
            await service.start("api", "worker", "notifier")
            seen = await child(
                "load",
                told={
                    "mode": "visible",
                    "traffic": "mixed",
                    "series": run,
                    "count": scale.visible_rate * scale.visible_seconds,
                    "rate": scale.visible_rate,
                    "wires": _WIRES,
                    "port": service.api.port,
                    "key": BOOTSTRAP_KEY,
                },
            )
        times = seen["visible"]
        samples += len(times)
        p50.append(percentile(times, 0.5))
        p99.append(percentile(times, 0.99))
        worst.append(times[-1])
        bench.say(f"visible {run + 1}: p50 {p50[-1] * 1e3:.1f} ms, p99 {p99[-1] * 1e3:.1f} ms, load {seen['statuses']}")
    name = f"ACK -> visible in the API at {scale.visible_rate:,}/s"
    return [
        Row(f"{name}: p50", milliseconds(p50), "< 15 ms", median(p50) < 0.015),
        Row(f"{name}: p99", milliseconds(p99), "< 100 ms", median(p99) < 0.100),
        Row(f"{name}: max, of {samples:,} samples", milliseconds(worst)),
    ]

"""The most memory that a worker process held at full load: heavy messages, the largest batches."""

from functools import partial

from tests.bench.bench import Bench
from tests.bench.drain import drain
from tests.bench.inbox import waiting
from tests.bench.report import Row, rate
from tests.bench.traffic import alerts, histories

_BYTES_MAX = 90 * 1024 * 1024


async def measure(bench: Bench) -> list[Row]:
    """The rows of this part."""
    scale = bench.scale
    loads = {
        "UPS alerts": await bench.server.filled("bench_alerts", waiting(partial(alerts, scale.alerts))),
        "FedEx histories": await bench.server.filled("bench_histories", waiting(partial(histories, scale.histories))),
    }
    rows = []
    for name, template in loads.items():
        peaks = [float((await drain(bench, template)).peak_rss_bytes) for _ in range(scale.runs)]
        bench.say(f"memory, {name}: {max(peaks) / 2**20:.0f} MB")
        met = sorted(peaks)[len(peaks) // 2] <= _BYTES_MAX
        rows.append(Row(f"peak RSS of a worker process, {name}", rate([peak / 2**20 for peak in peaks], " MB"), "<= 90 MB", met))
    return rows

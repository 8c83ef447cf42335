"""A retry storm: every message ten times, as fast as it is taken, over 64 connections that each
send the next after the answer.

"At once" has no latency of its own (the last of a crowd waits for all before it), so a request's
time runs from when its connection sends it, as a carrier sees it.
"""

from statistics import median
from typing import Any

from tests.bench.bench import Bench, child
from tests.bench.drain import until_empty
from tests.bench.report import Row, medians, milliseconds, rate
from tests.bench.traffic import ALERTS_A_SHIPMENT

_WIRES = 64
_COPIES = 10


async def measure(bench: Bench) -> list[Row]:
    scale = bench.scale
    results = []
    for run in range(scale.runs):
        results.append(await _run(bench))
        seen = results[-1]
        bench.say(
            f"storm {run + 1}: {seen['count'] / seen['elapsed']:,.0f}/s, p99"
            f" {seen['p99'] * 1e3:.1f} ms, lag {seen['lag']:.2f} s"
        )
    name = f"retry storm, {scale.storm_messages:,} messages x {_COPIES} at once"
    p99, lag = medians(results, "p99"), medians(results, "lag")
    wrong = sum(result["wrong"] for result in results)
    return [
        Row(f"{name}: ACK p99", milliseconds(p99), "< 100 ms", median(p99) < 0.100),
        Row("... ACKs", rate([result["count"] / result["elapsed"] for result in results])),
        Row("... lag after the burst", f"{median(lag):.2f} s", "< 5 s", median(lag) < 5),
        Row("... work not done exactly once, or not acknowledged", f"{wrong:,}", "0", wrong == 0),
    ]


async def _run(bench: Bench) -> dict[str, Any]:
    messages = bench.scale.storm_messages // ALERTS_A_SHIPMENT * ALERTS_A_SHIPMENT
    async with bench.server.database() as place, bench.service(place) as service:
        await service.start("api", "worker", "notifier")
        seen: dict[str, Any] = await child(
            "load",
            told={
                "mode": "closed",
                "traffic": "alerts",
                "series": 0,
                "count": messages,
                "copies": _COPIES,
                "wires": _WIRES,
                "port": service.api.port,
            },
        )
        seen["lag"] = await until_empty(place)
        refused = sum(count for status, count in seen["statuses"].items() if status != "200")
        events = await place.value("SELECT count(*) FROM statesvc.event")
        bodies = await place.value("SELECT count(*) FROM statesvc.body")
        verdicts = await place.value("SELECT count(*) FROM statesvc.message")
        seen["wrong"] = (
            refused + abs(events - messages) + abs(bodies - messages) + abs(verdicts - messages)
        )
        return seen

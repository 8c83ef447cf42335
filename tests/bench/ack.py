"""ACK latency at a fixed rate, while all roles as `up` runs them work on what was acknowledged."""

from typing import Any

from tests.bench.bench import Bench, child
from tests.bench.report import Row, medians, milliseconds, rate
from tests.bench.subscriber import subscriber
from tests.bench.whole import whole_service

_WIRES = 256
_NOT_ACCEPTED = {"200"}


async def measure(bench: Bench) -> list[Row]:
    scale = bench.scale
    results = []
    for run in range(scale.runs):
        results.append(await _run(bench, run))
        bench.say(
            f"ack {run + 1}: p99 {results[-1]['p99'] * 1e3:.1f} ms, {results[-1]['statuses']}, left"
            f" {results[-1]['left']}"
        )
    name = f"ACK, {scale.ack_rate:,} webhooks/s for {scale.ack_seconds} s, all roles working"
    p99, p999 = medians(results, "p99"), medians(results, "p999")
    refused = sum(
        count
        for result in results
        for status, count in result["statuses"].items()
        if status not in _NOT_ACCEPTED
    )
    return [
        Row(f"{name}: p50", milliseconds(medians(results, "p50"))),
        Row(f"{name}: p99", milliseconds(p99), "< 20 ms", sorted(p99)[len(p99) // 2] < 0.020),
        Row(f"{name}: p99.9", milliseconds(p999), "< 100 ms", sorted(p999)[len(p999) // 2] < 0.100),
        Row(f"{name}: max", milliseconds(medians(results, "max"))),
        Row("... not accepted, of all runs", f"{refused:,}", "0", refused == 0),
        Row(
            "... the load's own lateness, p99 (it is part of the figures above)",
            milliseconds(medians(results, "late_p99")),
        ),
        Row("... messages still waiting when the load ended", rate(medians(results, "left"), "")),
        Row("... notifications attempted meanwhile", rate(medians(results, "attempts"), "")),
    ]


async def _run(bench: Bench, run: int) -> dict[str, Any]:
    scale = bench.scale
    async with (
        bench.server.database() as place,
        subscriber() as url,
        whole_service(bench, place) as service,
    ):
        await service.post("/v1/subscriptions", {"url": url, "statuses": ["delivered"]})
        seen: dict[str, Any] = await child(
            "load",
            told={
                "mode": "open",
                "traffic": "mixed",
                "series": run,
                "count": scale.ack_rate * scale.ack_seconds,
                "rate": scale.ack_rate,
                "wires": _WIRES,
                "port": service.port,
            },
        )
        seen["left"] = await place.value("SELECT count(*) FROM statesvc.inbox")
        seen["attempts"] = await place.value("SELECT count(*) FROM statesvc.attempt")
        return seen

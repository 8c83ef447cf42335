"""All roles on this machine: how much they settle, and what an ACK and a reader wait for at half
and at twice that rate.

From ACK to visible is measured without a single request: the server records when each transaction
commits, so the time between the commit that stores a message and the one that settles it is known
of every message afterwards.
"""

from statistics import median
from typing import Any, Final

from tests.bench.bench import Bench, child
from tests.bench.drain import until_empty
from tests.bench.report import Row, medians, milliseconds, percentile, rate
from tests.bench.server import Place
from tests.bench.subscriber import subscriber
from tests.bench.whole import WholeService, used_between, whole_service

_WIRES: Final = 256
_CLOSED_WIRES: Final = 64
_BODIES_A_SECOND: Final = 12_000
LAGS: Final = """
SELECT extract(epoch FROM pg_xact_commit_timestamp(m.xmin) - pg_xact_commit_timestamp(b.xmin))::float8
FROM statesvc.message m JOIN statesvc.body b ON b.message_id = m.message_id AND b.received_at = m.received_at
"""
"""Seconds from the commit that stores each message to the one that settles it."""


async def measure(bench: Bench) -> list[Row]:
    rates, halves, twices = [], [], []
    for run in range(bench.scale.runs):
        rates.append(await _saturation(bench, run))
        half, twice = rates[-1] / 2, rates[-1] * 2
        halves.append(await _run(bench, run, at=half, seconds=bench.scale.ack_seconds))
        twices.append(await _run(bench, run, at=twice, seconds=bench.scale.ack_seconds))
        bench.say(
            f"saturation {run + 1}: {rates[-1]:,.0f}/s; half: ACK p99 {halves[-1]['p99'] * 1e3:.1f}"
            f" ms, visible p50 {halves[-1]['visible_p50'] * 1e3:.1f} ms, p99"
            f" {halves[-1]['visible_p99'] * 1e3:.1f} ms; twice: ACK p99"
            f" {twices[-1]['p99'] * 1e3:.1f} ms, {twices[-1]['statuses']}, drained after"
            f" {twices[-1]['drained']:.1f} s"
        )
    return [
        Row(
            "saturation: messages stored and settled by all roles, mixed load",
            rate(rates, " messages/s"),
        ),
        *_latencies("at half of it", halves, p99_bar=0.020),
        Row(
            "... ACK -> visible: p50",
            milliseconds(medians(halves, "visible_p50")),
            "< 40 ms",
            _below(halves, "visible_p50", 0.040),
        ),
        Row(
            "... ACK -> visible: p99",
            milliseconds(medians(halves, "visible_p99")),
        ),
        Row("... processor by role, of one core", _by_role(halves[-1])),
        *_latencies("at twice it", twices, p99_bar=0.100),
        Row("... drained after the load ended", f"{median(medians(twices, 'drained')):,.1f} s"),
    ]


def _latencies(name: str, runs: list[dict[str, Any]], *, p99_bar: float) -> list[Row]:
    refused = sum(
        count for run in runs for status, count in run["statuses"].items() if status != "200"
    )
    return [
        Row(f"{name}: ACK p50", milliseconds(medians(runs, "p50"))),
        Row(
            "... ACK p99",
            milliseconds(medians(runs, "p99")),
            f"< {p99_bar * 1e3:.0f} ms",
            _below(runs, "p99", p99_bar),
        ),
        Row(
            "... ACK p99.9",
            milliseconds(medians(runs, "p999")),
            *(("< 100 ms", _below(runs, "p999", 0.1)) if p99_bar < 0.1 else ()),
        ),
        Row(
            "... the load's own lateness, p99 (it is part of the figures above)",
            milliseconds(medians(runs, "late_p99")),
        ),
        Row("... refused, of all runs", f"{refused:,}", "0", refused == 0),
    ]


def _below(runs: list[dict[str, Any]], key: str, bar: float) -> bool:
    return median(medians(runs, key)) < bar


def _by_role(run: dict[str, Any]) -> str:
    shares = sorted(run["used"].items(), key=lambda used: -used[1])
    return ", ".join(
        f"{role} {seconds / run['elapsed']:.0%}"
        for role, seconds in shares
        if seconds / run["elapsed"] >= 0.01
    )


async def _saturation(bench: Bench, run: int) -> float:
    """Return messages a second, from the first push to the last verdict, with a load that
    takes whatever is answered.
    """
    seconds = bench.scale.closed_seconds
    async with (
        bench.server.database() as place,
        subscriber() as url,
        whole_service(bench, place) as service,
    ):
        await _subscribe(service, url)
        told = {"mode": "closed", "traffic": "mixed", "wires": _CLOSED_WIRES, "seconds": seconds}
        seen = await _load(service, run, **told, count=int(_BODIES_A_SECOND * seconds))
        drained = await until_empty(place)
        return float(seen["count"] / (seen["elapsed"] + drained))


async def _run(bench: Bench, run: int, *, at: float, seconds: float) -> dict[str, Any]:
    async with (
        bench.server.database() as place,
        subscriber() as url,
        whole_service(bench, place) as service,
    ):
        await _subscribe(service, url)
        before = service.cpu_seconds()
        seen = await _load(
            service,
            run,
            mode="open",
            traffic="mixed",
            count=int(at * seconds),
            rate=at,
            wires=_WIRES,
        )
        seen["used"] = used_between(before, service.cpu_seconds())
        seen["drained"] = await until_empty(place)
        lags = await _lags(place)
        return seen | {"visible_p50": percentile(lags, 0.5), "visible_p99": percentile(lags, 0.99)}


async def _subscribe(service: WholeService, url: str) -> None:
    await service.post("/v1/subscriptions", {"url": url, "statuses": ["delivered"]})


async def _load(service: WholeService, run: int, **told: Any) -> dict[str, Any]:
    seen: dict[str, Any] = await child("load", told={**told, "series": run, "port": service.port})
    return seen


async def _lags(place: Place) -> list[float]:
    """Return seconds from the commit that stores each message to the one that
    settles it, in order of size.
    """
    return sorted(lag for (lag,) in await place.rows(LAGS))

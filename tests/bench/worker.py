"""One worker process and the backlog: our figure, the limit of the same SQL, and two other
queues doing the same work.
"""

from collections import defaultdict
from functools import partial
from pathlib import Path

from tests.bench.bench import Bench, ChildError, child
from tests.bench.drain import Drained, drain
from tests.bench.inbox import RELEASE, waiting
from tests.bench.peer_environment import peer_python
from tests.bench.report import Row, rate, times
from tests.bench.traffic import SCANS, alerts, growing, histories

_PEERS = {
    "PgQueuer (psycopg)": ("peers.pgqueuer_drain", "psycopg"),
    "PgQueuer (asyncpg)": ("peers.pgqueuer_drain", "asyncpg"),
    "Procrastinate": ("peers.procrastinate_drain",),
}
_BARS = {"PgQueuer (psycopg)": 8, "PgQueuer (asyncpg)": 8, "Procrastinate": 20}


async def measure(bench: Bench) -> list[Row]:
    scale = bench.scale
    loads = {
        "UPS alerts, 1 scan": await bench.server.filled(
            "bench_alerts", waiting(partial(alerts, scale.alerts))
        ),
        f"FedEx histories, {SCANS} new scans": await bench.server.filled(
            "bench_histories", waiting(partial(histories, scale.histories))
        ),
        "FedEx histories, growing": await bench.server.filled(
            "bench_growing", waiting(partial(growing, scale.histories))
        ),
    }
    rows = []
    ours: dict[str, list[Drained]] = defaultdict(list)
    limits: dict[str, list[float]] = defaultdict(list)
    for name, template in loads.items():
        for run in range(scale.runs):
            ours[name].append(await drain(bench, template))
            limits[name].append(await _limit(bench, template))
            seen = ours[name][-1]
            bench.say(
                f"worker {run + 1}, {name}: {seen.messages_per_second:,.0f} messages/s,"
                f" {seen.events_per_second:,.0f} events/s, CPU"
                f" {seen.cpu_seconds / seen.seconds:.0%}; ready rows {limits[name][-1]:,.0f}"
                " messages/s"
            )
        rows += _rows(name, ours[name], limits[name])
    return rows + await _against_peers(
        bench, [run.messages_per_second for run in ours["UPS alerts, 1 scan"]]
    )


def _rows(name: str, runs: list[Drained], limit: list[float]) -> list[Row]:
    events = [run.events_per_second for run in runs]
    messages = [run.messages_per_second for run in runs]
    to_limit = times(messages, limit)
    last = runs[-1]
    worst = sum(run.undone for run in runs)
    processor = sorted(run.cpu_seconds / run.seconds for run in runs)[len(runs) // 2]
    return [
        Row(f"worker, {name}", rate(events, " events/s")),
        Row("... messages", rate(messages, " messages/s")),
        Row("... the same SQL fed with ready rows (limit)", rate(limit, " messages/s")),
        Row("... against that limit", f"{to_limit:.2f} x", ">= 0.5 x", to_limit >= 0.5),
        Row("... the worker's share of one core", f"{processor:.0%}"),
        Row(
            "... events, notifications, messages not applied",
            f"{last.events:,}, {last.told:,}, {worst:,}",
            "0 not applied",
            worst == 0,
        ),
    ]


async def _limit(bench: Bench, template: str) -> float:
    async with (
        bench.server.database(template) as recorded,
        bench.server.database(template) as replayed,
    ):
        for place in (recorded, replayed):
            await place.execute(*RELEASE)
        seen = await child("ready_rows", recorded.service, replayed.service)
        return float(seen["messages"] / seen["seconds"])


async def _against_peers(bench: Bench, ours: list[float]) -> list[Row]:
    python = await peer_python()
    if isinstance(python, str):
        return [Row(f"worker against {name}", f"skipped: {python}") for name in _PEERS]
    scale = bench.scale
    template = await bench.server.filled(
        "bench_peers", waiting(partial(alerts, scale.peer_messages))
    )
    rows = []
    for name, (module, *arguments) in _PEERS.items():
        try:
            rates = [
                await _peer(bench, python, template, module, *arguments) for _ in range(scale.runs)
            ]
        except ChildError as error:
            rows.append(Row(f"{name}, the same work", f"failed: {error}".replace("\n", " ")))
            continue
        bench.say(f"peer {name}: {rate(rates)}")
        ratio = times(ours, rates)
        rows += [
            Row(f"{name}, the same work on UPS alerts (peer)", rate(rates, " messages/s")),
            Row(
                f"... worker against {name}",
                f"{ratio:.1f} x",
                f">= {_BARS[name]} x",
                ratio >= _BARS[name],
            ),
        ]
    return rows


async def _peer(bench: Bench, python: Path, template: str, module: str, *arguments: str) -> float:
    async with bench.server.database(template) as place:
        seen = await child(module, place.owner, *arguments, python=python)
        applied = await place.value("SELECT count(*) FROM statesvc.event")
        if applied != bench.scale.peer_messages:
            raise ChildError(
                f"{module} applied {applied:,} of {bench.scale.peer_messages:,} messages"
            )
        return float(bench.scale.peer_messages / seen["seconds"])

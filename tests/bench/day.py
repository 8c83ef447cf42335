"""The load of a day: what a message costs the processors at 20, 100 and 300 a second, next to two
stacks written by hand, in turn.

Then at 100 a second beside a neighbour that keeps every core busy, where only the latencies mean
anything; and once more on a server that counts its statements.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.bench.bench import ROOT, Bench, child
from tests.bench.busy_cores import busy_cores
from tests.bench.peer_environment import peer_python
from tests.bench.processor import descendants, server_cpu_seconds
from tests.bench.report import Row, milliseconds, percentile, times
from tests.bench.server import BenchServer, Place
from tests.bench.statement_costs import (
    BEGIN,
    PRELOADED,
    StatementCost,
    read_statement_costs,
    statement_rows,
)
from tests.bench.whole import SERVER, used_between, whole_service
from tests.world.ports import free_port

_BARS: Final = {20: 9.0, 100: 5.0, 300: 3.0}
"""Milliseconds of processor a message."""
_AGAINST_STACK: Final = {"the stack on Procrastinate": 0.6, "the stack on asyncpg": 0.95}
_NOTIFIED_MEDIAN, _NOTIFIED_P99, _ACK_P99 = 0.120, 0.300, 0.015
_DAY_RATE: Final = 100
"""About that of eight million messages a day."""
_BUSY_NOTIFIED_P99: Final = 0.5
_WARM_SECONDS: Final = 8
_START_SECONDS: Final = 60
_STACKS: Final = {
    "the stack on Procrastinate": "written_on_procrastinate",
    "the stack on asyncpg": "written_on_asyncpg",
}
_CONNECTIONS: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name"
    " LIKE 'statesvc %' AND backend_type = 'client backend'"
)

Used = Callable[[], Mapping[str, float]]
Stacks = Mapping[str, "list[Run]"]
"""Their runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: milliseconds of processor a message by process, and latencies in seconds; of ours
    what it held at the end, too.
    """

    messages: int
    costs: Mapping[str, float]
    commits: float
    acked: list[float]
    notified: list[float]
    connections: int = 0
    pss_bytes: int = 0
    statements: Sequence[StatementCost] = ()

    @property
    def cost(self) -> float:
        return sum(self.costs.values())


async def measure(bench: Bench) -> list[Row]:
    python = await peer_python()
    rows = []
    for rate in _BARS:
        rows += _rows(rate, *await _turns(bench, python, rate))
    rows += _busy_rows(*await _turns(bench, python, _DAY_RATE, is_busy=True))
    rows += await _statement_rows(bench)
    return (
        rows
        if not isinstance(python, str)
        else [*rows, Row("the stacks written by hand", f"skipped: {python}")]
    )


async def _turns(
    bench: Bench, python: Path | str, rate: int, *, is_busy: bool = False
) -> tuple[list[Run], Stacks]:
    """Measure ours and the stacks in turn.

    `is_busy`: beside a neighbour that keeps every core busy.
    """
    ours = list[Run]()
    theirs: dict[str, list[Run]] = {name: [] for name in _STACKS if not isinstance(python, str)}
    for run in range(bench.scale.runs):
        title = f"day {rate}/s{' beside busy cores' if is_busy else ''} {run + 1}"
        ours.append(await _ours(bench, rate, run, is_busy=is_busy))
        latencies = f"p50 {_ms(ours[-1].notified, 0.5)}, p99 {_ms(ours[-1].notified, 0.99)}"
        bench.say(f"{title}: {ours[-1].cost:.2f} ms a message; push to notified {latencies}")
        for name, its in theirs.items():
            its.append(await _stack(bench, Path(python), name, rate, run, is_busy=is_busy))
            bench.say(
                f"{title}, {name}: {its[-1].cost:.2f} ms a message; push to notified p99"
                f" {_ms(its[-1].notified, 0.99)}"
            )
    return ours, theirs


def _ms(ordered: list[float], share: float) -> str:
    return f"{percentile(ordered, share) * 1e3:.1f} ms"


def _rows(rate: int, ours: list[Run], theirs: Stacks) -> list[Row]:
    costs = [run.cost for run in ours]
    middle = sorted(ours, key=lambda run: run.cost)[len(ours) // 2]
    rows = [
        Row(
            f"day, {rate} messages/s: processor of a message",
            milliseconds([cost / 1e3 for cost in costs]),
            f"<= {_BARS[rate]:.0f} ms",
            median(costs) <= _BARS[rate],
            median(costs),
        )
    ]
    for name, its in theirs.items():
        stack = [run.cost for run in its]
        ratio, bar = 1 / times(stack, costs), _AGAINST_STACK[name]
        rows += [
            Row(
                f"... {name}",
                milliseconds([cost / 1e3 for cost in stack]),
                figure=median(stack),
            ),
            Row("... against it", f"{ratio:.2f} x", f"<= {bar} x", ratio <= bar),
        ]
    of_day = rate == _DAY_RATE
    rows += [
        *(
            Row(f"... of it, {name}", f"{cost:.2f} ms", figure=cost if of_day else None)
            for name, cost in sorted(middle.costs.items(), key=lambda item: -item[1])
            if cost >= 0.01
        ),
        Row("... commits of the server a message", f"{middle.commits:.2f}"),
        Row(
            "... connections, and memory without the server",
            f"{middle.connections}; {middle.pss_bytes / 1e6:.0f} MB",
        ),
    ]
    rows += [
        _latency_row("... ACK p99", [percentile(run.acked, 0.99) for run in ours], _ACK_P99),
        _latency_row(
            "... push to notified p50",
            [percentile(run.notified, 0.5) for run in ours],
            _NOTIFIED_MEDIAN if of_day else None,
        ),
        _latency_row(
            "... push to notified p99",
            [percentile(run.notified, 0.99) for run in ours],
            _NOTIFIED_P99 if of_day else None,
        ),
    ]
    rows += [
        _latency_row(
            f"... push to notified p50, {name}", [percentile(run.notified, 0.5) for run in its]
        )
        for name, its in theirs.items()
    ]
    return rows


def _latency_row(what: str, seconds: list[float], bar: float | None = None) -> Row:
    limit = "" if bar is None else f"<= {bar * 1e3:.0f} ms"
    return Row(what, milliseconds(seconds), limit, None if bar is None else median(seconds) <= bar)


def _busy_rows(ours: list[Run], theirs: Stacks) -> list[Row]:
    title = f"day, {_DAY_RATE} messages/s beside busy cores"
    rows = [
        _latency_row(
            f"{title}: push to notified p99",
            [percentile(run.notified, 0.99) for run in ours],
            _BUSY_NOTIFIED_P99,
        ),
        _latency_row("... push to notified p50", [percentile(run.notified, 0.5) for run in ours]),
        _latency_row("... ACK p99", [percentile(run.acked, 0.99) for run in ours]),
    ]
    rows += [
        _latency_row(
            f"... push to notified p99, {name}", [percentile(run.notified, 0.99) for run in its]
        )
        for name, its in theirs.items()
    ]
    return rows


async def _statement_rows(bench: Bench) -> list[Row]:
    folder = bench.folder / "counting"
    server = BenchServer(folder, PRELOADED)
    try:
        await server.start()
        run = await _ours(
            replace(bench, server=server, folder=folder), _DAY_RATE, 0, counts_statements=True
        )
    finally:
        server.stop()
    return statement_rows(
        f"day, {_DAY_RATE} messages/s: statements of the server", run.statements, run.messages
    )


async def _ours(
    bench: Bench, rate: int, run: int, *, is_busy: bool = False, counts_statements: bool = False
) -> Run:
    port = free_port()
    async with bench.server.database() as place, whole_service(bench, place) as service:
        await service.post("/v1/subscriptions", {"url": f"http://127.0.0.1:{port}/"})
        told = {"url": f"{service.url}/v1/webhooks/ups", "headers": {}, "subscriber_port": port}
        begin = BEGIN if counts_statements else ()
        async with busy_cores() if is_busy else nullcontext():
            loaded = await _loaded(
                bench,
                {**told, "rate": rate},
                run,
                used=service.cpu_seconds,
                place=place,
                begin=begin,
            )
        return replace(
            loaded,
            connections=await place.value(_CONNECTIONS),
            pss_bytes=service.pss_bytes(),
            statements=await read_statement_costs(place) if counts_statements else [],
        )


async def _stack(
    bench: Bench, python: Path, name: str, rate: int, run: int, *, is_busy: bool
) -> Run:
    port, listens = free_port(), free_port()
    hook = f"http://127.0.0.1:{port}/"
    async with (
        bench.server.database() as place,
        _written_stack(python, name, place.superuser, listens, hook) as pids,
    ):
        data = Path(await place.value("SHOW data_directory"))

        def used() -> Mapping[str, float]:
            seconds: dict[str, float] = defaultdict(float)
            for role, pid in pids.items():
                seconds[role] = sum(descendants(pid).values())
            seconds[SERVER] = server_cpu_seconds(data)
            return seconds

        told = {
            "url": f"http://127.0.0.1:{listens}/",
            "headers": {"credential": "c"},
            "subscriber_port": port,
        }
        async with busy_cores() if is_busy else nullcontext():
            return await _loaded(bench, {**told, "rate": rate}, run, used=used, place=place)


async def _loaded(
    bench: Bench,
    told: Mapping[str, Any],
    run: int,
    *,
    used: Used,
    place: Place,
    begin: Sequence[str] = (),
) -> Run:
    """Load it twice: warm, and measured. `begin`: statements in between."""
    await child("day_load", told={**told, "seconds": _WARM_SECONDS, "series": 2 * run})
    await place.execute(*begin)
    query = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    before, commits = dict(used()), await place.value(query)
    seen = await child(
        "day_load", told={**told, "seconds": bench.scale.day_seconds, "series": 2 * run + 1}
    )
    after = used()
    count = seen["messages"]
    return Run(
        messages=count,
        costs={
            name: seconds / count * 1e3 for name, seconds in used_between(before, after).items()
        },
        commits=(await place.value(query) - commits) / count,
        acked=seen["acked"],
        notified=seen["notified"],
    )


@asynccontextmanager
async def _written_stack(
    python: Path, name: str, url: str, port: int, hook: str
) -> AsyncIterator[dict[str, int]]:
    """Run the written stack, and return the numbers of its processes."""
    processes: dict[str, asyncio.subprocess.Process] = {}
    try:
        for role in ("web", "worker"):
            processes[role] = await asyncio.create_subprocess_exec(
                *(
                    str(python),
                    "-m",
                    f"tests.bench.peers.{_STACKS[name]}",
                    role,
                    url,
                    str(port),
                    hook,
                ),
                cwd=ROOT,
                stdin=asyncio.subprocess.DEVNULL,
            )
            if role == "web":
                await _listens(port)
        yield {f"stack {role}": process.pid for role, process in processes.items()}
    finally:
        for process in processes.values():
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _listens(port: int) -> None:
    async with asyncio.timeout(_START_SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                return

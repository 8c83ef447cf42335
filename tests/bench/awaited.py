"""Costs of 100,000 awaited numbers: for a push, which looks at none of them, and when the hours
of all of them are over.

Pushes: processor of the worker's code and its connections, batch by batch in turn, next to as many
awaited numbers and next to none. Then one process works off all numbers: nothing was ever heard of
any, or of each something.
"""

import re
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.addons.expectations.watcher import observe_never_heard
from statesvc.database.queries import queries
from tests.bench.bench import Bench, child
from tests.bench.expectations import BATCH, PAIRS, WARMING
from tests.bench.inbox import RELEASE, SUBSCRIBE, waiting
from tests.bench.processor import own_cpu_seconds, server_cpu_seconds
from tests.bench.promises import shipments
from tests.bench.report import Row, rate
from tests.bench.search import STREAMS
from tests.bench.server import Place
from tests.bench.traffic import alerts

AWAITED: Final = 100_000
_PUSH_BAR_PERCENT: Final = 1.0
_READY: Final = ("VACUUM ANALYZE", "CHECKPOINT")
_SCANS: Final = (
    "SELECT seq_scan + idx_scan FROM pg_stat_user_tables WHERE relid ="
    " 'statesvc.awaited_number'::regclass"
)
_WRITTEN: Final = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
_IS_DUE: Final = queries("statesvc.addons.expectations", "watcher")["is_due"]


def _due(*, over: int) -> str:
    """Await them in the order of an hour; the hours of the first `over` have ended, of
    none where it is negative.
    """
    return f"""
INSERT INTO statesvc.awaited_number (number, carrier_id, hours, awaited_at, due_at)
SELECT '1ZX' || n, (ARRAY['ups', 'fedex', 'gls', 'dpd'])[1 + n % 4], 48, at, at + interval '48 hours'
FROM (
    SELECT n, statesvc.clock() + (n - {over}) * interval '36 ms' - interval '48 hours' AS at FROM generate_series(1, {AWAITED}) n
) x
"""


async def measure(bench: Bench) -> list[Row]:
    return [
        *await _pushes(bench),
        *await _idle(bench),
        *await _hour(bench, heard=False),
        *await _hour(bench, heard=True),
    ]


async def _pushes(bench: Bench) -> list[Row]:
    template = await bench.server.filled(
        "bench_expectations", waiting(partial(alerts, (WARMING + PAIRS) * BATCH))
    )
    with_them, without, percent, scans = [], [], [], []
    for run in range(bench.scale.runs):
        async with bench.server.database(template) as one, bench.server.database(template) as other:
            await one.execute(_due(over=-AWAITED), *_READY, *RELEASE)
            await other.execute(*_READY, *RELEASE)
            before = await one.value(_SCANS)
            seen = await child("expectation_steps", one.service, other.service)
            scans.append(await one.value(_SCANS) - before)
        with_them.append(seen["armed"])
        without.append(seen["unarmed"])
        percent.append(seen["percent"])
        bench.say(
            f"awaited {run + 1}: {with_them[-1]:.1f} us an event next to them, {without[-1]:.1f}"
            f" without, {percent[-1]:+.2f} %"
        )
    return [
        Row(
            f"processor of a pushed event next to {AWAITED:,} awaited numbers",
            f"{rate(with_them, ' us')}; {max(scans)} reads of them",
        ),
        Row("... without", rate(without, " us")),
        Row(
            "... more, median of pairs of batches",
            f"{median(percent):+.2f} % ({min(percent):+.2f} .. {max(percent):+.2f})",
            f"<= {_PUSH_BAR_PERCENT:.0f} %",
            median(percent) <= _PUSH_BAR_PERCENT,
        ),
    ]


async def _idle(bench: Bench) -> list[Row]:
    """Return what the look costs that each worker takes once a minute, while none is due."""
    async with bench.server.database() as place:
        await place.execute(_due(over=-AWAITED), *_READY)
        plan = "\n".join(
            line for (line,) in await place.rows(f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) {_IS_DUE}")
        )
    if "Seq Scan on awaited_number" in plan:
        raise RuntimeError(plan)
    found = re.search(r"Buffers: shared (?:hit=(\d+))?(?: ?read=(\d+))?", plan)
    assert found is not None, plan
    return [
        Row(
            "a worker's look each minute, none due",
            f"{sum(int(each or 0) for each in found.groups())} blocks",
        )
    ]


async def _hour(bench: Bench, *, heard: bool) -> list[Row]:
    worked: list[float] = []
    served: list[float] = []
    passes: list[float] = []
    written = 0
    for _ in range(bench.scale.runs):
        async with bench.server.database() as place:
            fill = (shipments(AWAITED, one_under_way_in=1), STREAMS) if heard else ()
            await place.execute(SUBSCRIBE, *fill, _due(over=AWAITED), *_READY)
            written = await place.value(_WRITTEN)
            worker, server, times = await _worked_off(place, observed=0 if heard else AWAITED)
            written = await place.value(_WRITTEN) - written
        worked.append(worker)
        served.append(server)
        passes += times
    what = (
        "of each something was heard"
        if heard
        else "nothing was heard of any, one subscription is told"
    )
    total = [one + other for one, other in zip(worked, served, strict=True)]
    shares = (
        f"worker {median(worked):.1f}, server {median(served):.1f}; {median(total) / 36:.2f} % of a"
        " core"
    )
    return [
        Row(
            f"{AWAITED:,} awaited numbers due in an hour, {what}",
            f"{rate(total, ' s')} of processor: {shares}",
        ),
        Row(
            "... a pass of 500",
            f"{median(passes) * 1e3:.0f} ms, longest {max(passes) * 1e3:.0f};"
            f" {written / AWAITED:,.0f} B of WAL a number",
        ),
    ]


async def _worked_off(place: Place, *, observed: int) -> tuple[float, float, Sequence[float]]:
    """Let one process work off what is due.

    Return seconds of processor, its own and the server's, and those that each pass took.
    """
    data = Path(await place.value("SHOW data_directory"))
    async with await AsyncConnection.connect(place.service, autocommit=True) as connection:
        own, server, times, found = own_cpu_seconds(), server_cpu_seconds(data), [], 0
        is_full: Any = True
        while is_full:
            began = time.perf_counter()
            report = await observe_never_heard(connection, worker="bench")
            times.append(time.perf_counter() - began)
            found += len(report.observations)
            is_full = report.is_full
    if found != observed:
        raise RuntimeError(f"{found:,} were observed, not {observed:,}")
    return own_cpu_seconds() - own, server_cpu_seconds(data) - server, times

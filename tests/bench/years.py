"""Queries of a log of years, each at its bar: over HTTP, one after the other, of shipments
from all over the log.

A log of 100,000 events with as many partitions is measured first: what a query reads must not grow
with the log. Counted is what the sessions of the API read, planning included, and no autovacuum
that is at work meanwhile. A B-tree of more rows is deeper: how many of the blocks lie above its
leaves is measured by itself.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final

from tests.acceptance.processes import BOOTSTRAP_KEY, RoleProcess, running
from tests.bench.bench import Bench
from tests.bench.drain import cpu_seconds
from tests.bench.report import Row, percentile
from tests.bench.wire import Wire, ask, connect, get
from tests.bench.years_log import YearsLog, fill, seed, targets

_SMALL: Final = 100_000
_CALLS: Final = 400
_FEED_PAGE: Final = 500
_SESSIONS: Final = 8
"""Sessions of the pool of the API, which takes turns."""
_REPORT_SECONDS: Final = 1.2
_GROWTH: Final = 1.2
_OF_API: Final = (
    "FROM pg_stat_activity a {} WHERE a.datname = current_database() AND a.usename ="
    " 'statesvc_service'"
)
_BLOCKS: Final = "SELECT sum(coalesce(i.hits, 0) + coalesce(i.reads, 0))::bigint " + _OF_API.format(
    "CROSS JOIN LATERAL pg_stat_get_backend_io(a.pid) i"
)
_SERVERS: Final = "SELECT a.pid " + _OF_API.format("")
_PARTITIONS: Final = """
SELECT i.inhrelid::regclass::text, coalesce(s.idx_scan, 0) + s.seq_scan FROM pg_inherits i JOIN pg_stat_all_tables s ON s.relid = i.inhrelid
WHERE s.schemaname = 'statesvc'
"""
# a descent begins at the fast root, whose level stands in the index's first page
_ABOVE_LEAVES: Final = """
SELECT sum(s.idx_scan * get_byte(pg_read_binary_file(pg_relation_filepath(s.indexrelid), 44, 1), 0))::bigint FROM pg_stat_all_indexes s
JOIN pg_class c ON c.oid = s.indexrelid JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree' WHERE s.schemaname = 'statesvc'
"""


@dataclass(frozen=True, slots=True)
class Query:
    """A call of the API; `bar_ms` None: it has none."""

    what: str
    path: Callable[[str, YearsLog], str]
    bar_ms: float | None = None


_QUERIES: Final = (
    Query("state of a shipment", lambda number, _: f"/v1/shipments/ups/{number}", 5),
    Query("search by number alone", lambda number, _: f"/v1/shipments?tracking_number={number}", 5),
    Query("history", lambda number, _: f"/v1/shipments/ups/{number}/history", 5),
    Query(
        f"feed page of {_FEED_PAGE}",
        lambda number, log: f"/v1/feed?after={_index(number, log)}&limit={_FEED_PAGE}",
        10,
    ),
    Query("audit", lambda number, _: f"/v1/shipments/ups/{number}/audit"),
    Query(
        "proof of inclusion",
        lambda number, log: f"/v1/proofs/inclusion?index={_index(number, log)}",
    ),
    Query(
        "list by status, a page of 100",
        lambda _number, _log: "/v1/shipments?status=out_for_delivery&limit=100",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of one query on one log.

    `cpu_ms`: of the processors, by the API and its sessions; `above_leaves`: of `blocks`.
    """

    p50_ms: float
    p99_ms: float
    cpu_ms: float
    blocks: float
    above_leaves: float
    partitions: int


async def measure(bench: Bench) -> list[Row]:
    rows = []
    template = await bench.server.filled("bench_years_seed", lambda place: seed(bench, place))
    for months in bench.scale.years_months:
        found = []
        for events in (min(_SMALL, bench.scale.years_events // 4), bench.scale.years_events):
            async with bench.server.database(template) as place:
                log = await fill(bench, place, months=months, events=events)
                bench.say(f"{log.events:,} events in {months} months after {log.seconds:.0f} s")
                found.append(await _measured(bench, log))
        small, large = found
        rows.append(
            Row(
                f"log of {log.events:,} events over {months} months: filled in",
                f"{log.seconds:,.0f} s",
            )
        )
        rows += [
            row for query in _QUERIES for row in _rows(query, small[query.what], large[query.what])
        ]
    return rows


def _rows(query: Query, small: Figures, large: Figures) -> Iterator[Row]:
    measured = f"p50 {large.p50_ms:.1f} ms, p99 {large.p99_ms:.1f} ms, CPU {large.cpu_ms:.1f} ms"
    bar = query.bar_ms
    yield Row(
        query.what,
        measured,
        "" if bar is None else f"p99 < {bar:.0f} ms",
        None if bar is None else large.p99_ms < bar,
    )
    growth = large.blocks / max(small.blocks, 1.0)
    at_leaves = (large.blocks - large.above_leaves) / max(small.blocks - small.above_leaves, 1.0)
    read = (
        f"{large.blocks:.0f} blocks, {growth:.2f} x; without {large.above_leaves:.0f} above leaves "
        f"{at_leaves:.2f} x; {large.partitions} partitions"
    )
    yield Row("... a call reads", read, f"<= {_GROWTH} x", growth <= _GROWTH)


async def _measured(bench: Bench, log: YearsLog) -> dict[str, Figures]:
    async with running(bench.service(log.place), "api") as service:
        wire = await connect(service.api.port)
        found = {query.what: await _ask(bench, service.api, wire, log, query) for query in _QUERIES}
        wire.close()
        return found


async def _ask(bench: Bench, api: RoleProcess, wire: Wire, log: YearsLog, query: Query) -> Figures:
    # each session has been in each month before, as those of a service that has run for a while:
    # the first time it reads its catalogue
    earlier = [query.path(number, log) for number in targets(log, _CALLS, turn=0)]
    for _ in range(_SESSIONS):
        await _calls(wire, [*earlier, earlier[0]])
    paths = cycle([query.path(number, log) for number in targets(log, _CALLS, turn=1)])
    await _reported(wire, next(paths))
    processes = [api.process.pid, *(pid for (pid,) in await log.place.rows(_SERVERS))]
    before, above, used = (
        await log.place.value(_BLOCKS),
        await log.place.value(_ABOVE_LEAVES),
        sum(map(cpu_seconds, processes)),
    )
    seconds = await _calls(wire, islice(paths, _CALLS))
    used = sum(map(cpu_seconds, processes)) - used
    await _reported(wire, one := next(paths))
    counted = _CALLS + _SESSIONS
    figures = Figures(
        p50_ms=percentile(seconds, 0.5) * 1e3,
        p99_ms=percentile(seconds, 0.99) * 1e3,
        cpu_ms=used / _CALLS * 1e3,
        blocks=(await log.place.value(_BLOCKS) - before) / counted,
        above_leaves=(await log.place.value(_ABOVE_LEAVES) - above) / counted,
        partitions=await _partitions(wire, log, one),
    )
    bench.say(f"{query.what}: {figures}")
    return figures


async def _partitions(wire: Wire, log: YearsLog, path: str) -> int:
    """Count the partitions that a call looks into."""
    scans = dict(await log.place.rows(_PARTITIONS))
    await _reported(wire, path)
    return sum(scans.get(name) != count for name, count in await log.place.rows(_PARTITIONS))


async def _calls(wire: Wire, paths: Iterable[str]) -> list[float]:
    """Make the calls one after the other; return the seconds that each took, the shortest first.

    Raises RuntimeError where one is refused.
    """
    seconds = []
    for path in paths:
        began = time.perf_counter()
        status, body = await ask(wire, get(path, BOOTSTRAP_KEY))
        seconds.append(time.perf_counter() - began)
        if status != 200:
            raise RuntimeError(f"{path} was refused: {status} {body[:200]!r}")
    return sorted(seconds)


async def _reported(wire: Wire, path: str) -> None:
    """Wait until every session has reported what it read, as it does at the end of a transaction,
    at most once a second.
    """
    await asyncio.sleep(_REPORT_SECONDS)
    await _calls(wire, [path] * _SESSIONS)


def _index(number: str, log: YearsLog) -> int:
    """Return the index of an entry about as far in the log as the shipment's copy."""
    return int(number[3:9]) * log.events // (log.copies + 1) + int(number[9:]) // 2

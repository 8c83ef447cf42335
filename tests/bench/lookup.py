"""Duration of a lookup of 200 numbers, and what it reads: for the part `search`, over its million
shipments of five events.

Of each 200 one in ten is awaited and nothing was heard of it, one in ten nobody has.
"""

import random
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from psycopg import AsyncConnection

from statesvc.api.lookup_operations import NUMBERS_MAX
from statesvc.database.queries import queries
from statesvc.shipments.shipment_list import PrintedNumber, lookup_parameters
from tests.acceptance.processes import BOOTSTRAP_KEY, RoleProcess
from tests.bench.bench import Bench
from tests.bench.drain import cpu_seconds
from tests.bench.processor import server_cpu_seconds
from tests.bench.promises import EVENTS_OF_A_SHIPMENT
from tests.bench.report import Row, milliseconds, percentile
from tests.bench.server import Place
from tests.bench.wire import Wire, ask, post_json

BAR_SECONDS: Final = 0.03
AWAITED: Final = 100_000
FILL_AWAITED: Final = f"""
INSERT INTO statesvc.awaited_number (number, carrier_id, hours, awaited_at, due_at)
SELECT '1ZW' || n, (ARRAY['ups', 'fedex', 'gls', 'dpd'])[1 + n % 4], 48, statesvc.clock(), statesvc.clock() + interval '48 hours'
FROM generate_series(1, {AWAITED}) n
"""
CARRIERS: Final = ("ups", "fedex", "gls", "dpd")
"""Carriers in the order in which the fill deals them out."""
_PATH: Final = "/v1/shipments/lookup"
_WARMING: Final = 20
_LOOKUPS_EACH: Final = 10
"""A lookup takes as long as so many searches, so so many fewer are made."""
_SQL: Final = queries("statesvc.shipments", "shipment_list")


async def measure_lookups(
    bench: Bench, place: Place, api: RoleProcess, wire: Wire, count: int
) -> list[Row]:
    data = Path(await place.value("SHOW data_directory"))
    rows = []
    for kind, named in (("with their carriers", True), ("without", False)):
        asked: list[list[float]] = []
        used: list[float] = []
        for run in range(bench.scale.runs):
            chance = random.Random(run)
            numbers = [
                _numbers(chance, count, named=named)
                for _ in range(_WARMING + bench.scale.likely_searches // _LOOKUPS_EACH)
            ]
            before = cpu_seconds(api.process.pid) + server_cpu_seconds(data)
            seconds = [await _answered(wire, each) for each in numbers]
            used.append(
                (cpu_seconds(api.process.pid) + server_cpu_seconds(data) - before) / len(numbers)
            )
            asked.append(sorted(seconds[_WARMING:]))
        p50, p99 = ([percentile(each, share) for each in asked] for share in (0.5, 0.99))
        what = (
            f"lookup of {NUMBERS_MAX} numbers {kind}, {count * EVENTS_OF_A_SHIPMENT:,} events: p99"
        )
        rows.append(
            Row(what, milliseconds(p99), f"< {BAR_SECONDS * 1e3:.0f} ms", median(p99) < BAR_SECONDS)
        )
        rows.append(Row("... p50", milliseconds(p50)))
        rows.append(Row("... of the processors, by the API and the server", milliseconds(used)))
        rows.append(
            Row("... reads", await _read(place, _numbers(random.Random(0), count, named=named)))
        )
    return rows


def _numbers(chance: random.Random, count: int, *, named: bool) -> list[PrintedNumber]:
    found = []
    for place, n in enumerate(chance.choices(range(1, count + 1), k=NUMBERS_MAX)):
        number = {0: f"1ZW{1 + n % AWAITED}", 1: f"1ZY{n}"}.get(place % 10, f"1ZX{n}")
        # awaited numbers are dealt out in the same way
        at = 1 + n % AWAITED if place % 10 == 0 else n
        found.append(PrintedNumber(number, CARRIERS[at % 4] if named else None))
    return found


async def _answered(wire: Wire, numbers: Sequence[PrintedNumber]) -> float:
    """Return the seconds of one lookup.

    Raises RuntimeError where its answer is another than expected.
    """
    request = post_json(_PATH, {"numbers": [one._asdict() for one in numbers]}, BOOTSTRAP_KEY)
    began = perf_counter()
    status, body = await ask(wire, request)
    seconds = perf_counter() - began
    if status != 200 or body.count(b'"shipments":[]') != NUMBERS_MAX // 10:
        raise RuntimeError(f"{_PATH}: {status} {body[:200]!r}")
    return seconds


async def _read(place: Place, numbers: Sequence[PrintedNumber]) -> str:
    """Return how many blocks the statement reads.

    Raises RuntimeError where it reads a table from end to end.
    """
    async with await AsyncConnection.connect(place.superuser, autocommit=True) as connection:
        explain = "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) " + _SQL["lookup"]
        plan = "\n".join(
            line
            for (line,) in await (
                await connection.execute(explain, lookup_parameters(numbers))
            ).fetchall()
        )
    if "Seq Scan" in plan:
        raise RuntimeError(plan)
    found = re.search(r"Buffers: shared (?:hit=(\d+))?(?: ?read=(\d+))?", plan)
    assert found is not None, plan
    used = sorted(set(re.findall(r"(?:using|Index Scan on) (\w+)", plan)))
    return f"{sum(int(each or 0) for each in found.groups()):,} blocks, by {', '.join(used)}"

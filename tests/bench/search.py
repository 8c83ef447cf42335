"""Duration of a search by number over five million events: a million shipments of five, asked for
one after the other over HTTP.

A search reads shipments and streams by their indexes, never the log: those two tables are filled.
What the index of the last characters costs is written when a shipment is heard of first: half an
hour's shipments after a checkpoint, with the index and without.
"""

import asyncio
import random
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Final

from tests.acceptance.processes import BOOTSTRAP_KEY, running
from tests.bench.bench import Bench
from tests.bench.lookup import CARRIERS, FILL_AWAITED, measure_lookups
from tests.bench.promises import EVENTS_OF_A_SHIPMENT, shipments
from tests.bench.report import Row, milliseconds, percentile
from tests.bench.server import Place
from tests.bench.wire import Wire, ask, connect, get

BAR_SECONDS: Final = 0.005
_PART_BAR_SECONDS: Final = 0.01
_COST_BAR_BYTES: Final = 300
_NEW_SHIPMENTS: Final = 36_000
"""Shipments of half an hour, from one checkpoint to the next, with a hundred messages a
second and five a shipment.
"""
_PACE_SECONDS: Final = 0.00125
"""A key may ask a thousand times a second."""
_WARMING: Final = 200
STREAMS: Final = """
INSERT INTO statesvc.stream (shipment_id, carrier_id, number, discriminator, version, head_hash, recorded_at, first_recorded_at, sealed_key)
SELECT shipment_id, carrier_id, number, discriminator, version, sha256(number::bytea), recorded_at, first_recorded_at,
    sha256(number::bytea) || sha256(number::bytea)
FROM statesvc.shipment
"""
# a table that has this index alone, filled one number after the other as UPS makes
# them: eighteen characters
_ALONE: Final = """
DO $$ BEGIN
    CREATE TABLE statesvc.number_alone AS SELECT number FROM statesvc.stream WITH NO DATA;
    EXECUTE replace(replace(pg_get_indexdef('statesvc.stream_number_end'::regclass), 'stream_number_end', 'number_alone_end'),
        'statesvc.stream ', 'statesvc.number_alone ');
END $$
"""
_NEW: Final = (
    "INSERT INTO statesvc.number_alone SELECT '1Z' || upper(left(md5(n || '{}'), 16)) FROM"
    " generate_series(1, {}) n"
)
_SIZE: Final = "SELECT pg_relation_size('statesvc.number_alone_end')::float"
_WRITTEN: Final = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float"


async def measure(bench: Bench) -> list[Row]:
    count = bench.scale.found_shipments
    kinds: dict[str, Callable[[int], str]] = {
        "by number alone": lambda n: f"/v1/shipments?tracking_number=1ZX{n}",
        "by carrier and number": lambda n: (
            f"/v1/shipments?carrier_id={CARRIERS[n % 4]}&tracking_number=1ZX{n}"
        ),
        "a number that nobody has": lambda n: f"/v1/shipments?tracking_number=1ZY{n}",
        "the number in another spelling": lambda n: f"/v1/shipments?tracking_number=1zx-{n}",
        "the last 5 characters": lambda n: (
            f"/v1/shipments?order=newest&tracking_number=*{f'1ZX{n}'[-5:]}"
        ),
        "how it begins": lambda n: (
            f"/v1/shipments?order=newest&tracking_number=1ZX{max(n, count // 10) // 10}*"
        ),
    }
    rows = []
    async with bench.server.database() as place:
        bench.say(f"filling {count:,} shipments")
        await place.execute(
            shipments(count, one_under_way_in=20),
            STREAMS,
            FILL_AWAITED,
            "VACUUM ANALYZE statesvc.shipment, statesvc.stream, statesvc.awaited_number",
            "CHECKPOINT",
        )
        async with running(bench.service(place), "api") as service:
            wire = await connect(service.api.port)
            for kind, path in kinds.items():
                asked: list[list[float]] = []
                for run in range(bench.scale.runs):
                    numbers = random.Random(run).choices(
                        range(1, count + 1), k=_WARMING + bench.scale.likely_searches
                    )
                    seconds = [
                        await _answered(wire, path(n), found=kind != "a number that nobody has")
                        for n in numbers
                    ]
                    asked.append(sorted(seconds[_WARMING:]))
                p50, p99 = ([percentile(each, share) for each in asked] for share in (0.5, 0.99))
                what = f"search, {count * EVENTS_OF_A_SHIPMENT:,} events, {kind}"
                bar = _PART_BAR_SECONDS if "*" in path(count) else BAR_SECONDS
                rows.append(
                    Row(
                        f"{what}: p99",
                        milliseconds(p99),
                        f"< {bar * 1e3:.0f} ms",
                        median(p99) < bar,
                    )
                )
                rows.append(Row("... p50", milliseconds(p50)))
            rows += await measure_lookups(bench, place, service.api, wire, count)
            wire.close()
        rows += await _cost(place, count)
    return rows


async def _cost(place: Place, count: int) -> list[Row]:
    """Measure what a message costs by the index of the last characters."""
    await place.execute(_ALONE, _NEW.format("filled", count).encode())
    index_bytes = await place.value(_SIZE)
    with_index = await _written(place, "new")
    await place.execute("DROP INDEX statesvc.number_alone_end")
    a_message = (
        (with_index - await _written(place, "newer")) / _NEW_SHIPMENTS / EVENTS_OF_A_SHIPMENT
    )
    what = f"{a_message:.0f} B of WAL a message; on disk {index_bytes / count:.0f} B a shipment"
    return [
        Row(
            "the index of the last characters",
            what,
            f"<= {_COST_BAR_BYTES} B",
            a_message <= _COST_BAR_BYTES,
        )
    ]


async def _written(place: Place, series: str) -> float:
    await place.execute("CHECKPOINT")
    before: float = await place.value(_WRITTEN)
    await place.execute(_NEW.format(series, _NEW_SHIPMENTS).encode())
    return float(await place.value(_WRITTEN)) - before


async def _answered(wire: Wire, path: str, *, found: bool) -> float:
    """Return the seconds of one search.

    Raises RuntimeError where its answer is another than expected.
    """
    began = perf_counter()
    status, body = await ask(wire, get(path, BOOTSTRAP_KEY))
    seconds = perf_counter() - began
    if status != 200 or (b'"items":[]' in body) is found:
        raise RuntimeError(f"{path}: {status} {body[:200]!r}")
    await asyncio.sleep(max(0.0, _PACE_SECONDS - seconds))
    return seconds

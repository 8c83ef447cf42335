"""How long a search by number takes over five million events: a million shipments of five, asked for one after the other over HTTP.

A search reads shipments and streams by their indexes, never the log: those two tables are filled.
"""

import asyncio
import random
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Final

from tests.acceptance.processes import BOOTSTRAP_KEY, running
from tests.bench.bench import Bench
from tests.bench.promises import EVENTS_OF_A_SHIPMENT, shipments
from tests.bench.report import Row, milliseconds, percentile
from tests.bench.wire import Wire, ask, connect, get

BAR_SECONDS: Final = 0.005
_PACE_SECONDS: Final = 0.00125
"""A key may ask a thousand times a second."""
_WARMING: Final = 200
_STREAMS: Final = """
INSERT INTO statesvc.stream (shipment_id, carrier_id, number, discriminator, version, head_hash, recorded_at, first_recorded_at, sealed_key)
SELECT shipment_id, carrier_id, number, discriminator, version, sha256(number::bytea), recorded_at, first_recorded_at,
    sha256(number::bytea) || sha256(number::bytea)
FROM statesvc.shipment
"""
_CARRIERS: Final = ("ups", "fedex", "gls", "dpd")
"""As the fill deals them out."""


async def measure(bench: Bench) -> list[Row]:
    """The rows of this part."""
    count = bench.scale.found_shipments
    kinds: dict[str, Callable[[int], str]] = {
        "by number alone": lambda n: f"/v1/shipments?tracking_number=1ZX{n}",
        "by carrier and number": lambda n: f"/v1/shipments?carrier_id={_CARRIERS[n % 4]}&tracking_number=1ZX{n}",
        "a number that nobody has": lambda n: f"/v1/shipments?tracking_number=1ZY{n}",
        "the number in another spelling": lambda n: f"/v1/shipments?tracking_number=1zx-{n}",
    }
    rows = []
    async with bench.server.database() as place:
        bench.say(f"filling {count:,} shipments")
        await place.execute(
            shipments(count, one_under_way_in=20), _STREAMS, "VACUUM ANALYZE statesvc.shipment, statesvc.stream", "CHECKPOINT"
        )
        async with running(bench.service(place), "api") as service:
            wire = await connect(service.api.port)
            for kind, path in kinds.items():
                asked: list[list[float]] = []
                for run in range(bench.scale.runs):
                    numbers = random.Random(run).choices(range(1, count + 1), k=_WARMING + bench.scale.searches)
                    seconds = [await _answered(wire, path(n), found=kind != "a number that nobody has") for n in numbers]
                    asked.append(sorted(seconds[_WARMING:]))
                p50, p99 = ([percentile(each, share) for each in asked] for share in (0.5, 0.99))
                what = f"search, {count * EVENTS_OF_A_SHIPMENT:,} events, {kind}"
                rows.append(Row(f"{what}: p99", milliseconds(p99), "< 5 ms", median(p99) < BAR_SECONDS))
                rows.append(Row("... p50", milliseconds(p50)))
            wire.close()
    return rows


async def _answered(wire: Wire, path: str, *, found: bool) -> float:
    """The seconds of one search. Raises RuntimeError where its answer is another than expected."""
    began = perf_counter()
    status, body = await ask(wire, get(path, BOOTSTRAP_KEY))
    seconds = perf_counter() - began
    if status != 200 or (b'"items":[]' in body) is found:
        raise RuntimeError(f"{path}: {status} {body[:200]!r}")
    await asyncio.sleep(max(0.0, _PACE_SECONDS - seconds))
    return seconds

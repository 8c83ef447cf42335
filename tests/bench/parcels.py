"""Costs of parcels that a carrier and two aggregators push: processor of the worker's code and its
connections, batch by batch in turn.

Both databases get the same bodies, whose one subscription asks for each status of a
parcel once; in one of them the aggregators name a carrier that nobody knows, so each
shipment is a parcel by itself.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from statistics import median
from typing import Final

from tests.bench.bench import Bench, child
from tests.bench.expectations import BATCH, PAIRS, WARMING
from tests.bench.inbox import RELEASE, waiting
from tests.bench.parcel_sources import JOURNEY, SOURCES, WRITERS
from tests.bench.report import Row, rate
from tests.bench.traffic import Push

_MESSAGES: Final = (WARMING + PAIRS) * BATCH
_ONCE: Final = "UPDATE statesvc.subscription SET parcels = 'once'"
_LINKED: Final = "SELECT count(*) FROM statesvc.stream WHERE parcel_id IS NOT NULL"


async def measure(bench: Bench) -> list[Row]:
    linked = await bench.server.filled("bench_parcels", waiting(partial(_pushes, "ups")))
    apart = await bench.server.filled("bench_no_parcels", waiting(partial(_pushes, "zzz")))
    together: list[float] = []
    alone: list[float] = []
    percent: list[float] = []
    for run in range(bench.scale.runs):
        async with bench.server.database(linked) as one, bench.server.database(apart) as other:
            for place in (one, other):
                await place.execute(_ONCE, *RELEASE)
            seen = await child("expectation_steps", one.service, other.service)
            if not await one.value(_LINKED) or await other.value(_LINKED):
                raise RuntimeError("the wrong shipments are parcels")
        together.append(seen["armed"])
        alone.append(seen["unarmed"])
        percent.append(seen["percent"])
        bench.say(
            f"parcels {run + 1}: {together[-1]:.1f} us a message of three sources, {alone[-1]:.1f}"
            f" apart, {percent[-1]:+.2f} %"
        )
    return [
        Row(
            "processor of a message of a parcel of three sources, each status once",
            rate(together, " us"),
        ),
        Row("... of as many shipments that are parcels by themselves", rate(alone, " us")),
        Row(
            "... more, median of pairs of batches",
            f"{median(percent):+.2f} % ({min(percent):+.2f} .. {max(percent):+.2f})",
        ),
    ]


def _pushes(carrier: str) -> Iterator[Push]:
    """Yield each parcel's scans, step by step, of one source after the other.

    `carrier`: named by the aggregators.
    """
    parcels = range(-(-_MESSAGES // len(JOURNEY) // len(SOURCES)))
    told = (
        (source, WRITERS[source](f"1ZC{n:015d}", [step], carrier))
        for step in range(len(JOURNEY))
        for source in SOURCES
        for n in parcels
    )
    return islice(told, _MESSAGES)

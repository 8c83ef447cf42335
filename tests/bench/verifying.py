"""How fast the whole log is verified, sealed parts opened and left closed: by two processes, once they have started."""

import asyncio
import time
from functools import partial
from statistics import median
from typing import Final

from statesvc.keys import parse_master_keys
from statesvc.verification.processes import Access
from statesvc.verification.run import Order, Verification
from tests.acceptance.processes import MASTER_KEY, until_false
from tests.bench.bench import Bench
from tests.bench.drain import until_empty
from tests.bench.inbox import waiting
from tests.bench.report import Row, rate
from tests.bench.server import Place
from tests.bench.traffic import SCANS, histories

_PROCESSES: Final = 2
_BAR: Final = 100_000


async def measure(bench: Bench) -> list[Row]:
    """The rows of this part."""
    template = await bench.server.filled("bench_histories", waiting(partial(histories, bench.scale.histories)))
    rates: dict[str, list[float]] = {"sealed parts left closed": [], "sealed parts opened": []}
    async with bench.server.database(template) as place, bench.service(place) as service:
        await service.start("worker", "sealer")
        await until_empty(place)
        await until_false(lambda: place.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)"))
        for run in range(bench.scale.runs):
            for name, found in rates.items():
                found.append(await asyncio.to_thread(_events_per_second, place, opens=name.endswith("opened")))
                bench.say(f"verify {run + 1}, {name}: {found[-1]:,.0f} events/s")
    return [
        Row(f"verify, FedEx histories of {SCANS} scans, {name}", rate(found, " events/s"), f">= {_BAR:,} events/s", median(found) >= _BAR)
        for name, found in rates.items()
    ]


def _events_per_second(place: Place, *, opens: bool) -> float:
    """From the first stretch that is done to the last: what comes before it is the same for any log."""
    seen: list[tuple[float, int]] = []
    access = Access(dsn=place.service, master_keys=parse_master_keys(MASTER_KEY).keys if opens else None)
    order = Order(access=access, processes=_PROCESSES)
    report = Verification(order, lambda done, _: seen.append((time.perf_counter(), done))).run()
    if not report.sound:
        raise RuntimeError(f"the log is not sound: {report.faults[0]}")
    (began, first), (ended, last) = seen[0], seen[-1]
    return (last - first) / max(ended - began, 1e-9) * report.events / report.entries

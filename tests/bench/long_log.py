"""A log of many events, sealed, as the service itself appends it: what reads whole
logs is measured on it.
"""

from functools import partial
from typing import Final

from tests.acceptance.processes import until_false
from tests.bench.bench import Bench
from tests.bench.drain import until_empty
from tests.bench.inbox import waiting
from tests.bench.server import Place
from tests.bench.traffic import SCANS, histories

_WORKERS: Final = 2


async def long_log(bench: Bench) -> str:
    """Return the template with `rebuild_events` events of FedEx histories, made when it is asked
    for first: a minute a million.
    """
    return await bench.server.filled("bench_long_log", partial(_fill, bench))


async def _fill(bench: Bench, place: Place) -> None:
    bench.say(f"appending {bench.scale.rebuild_events:,} events")
    await waiting(partial(histories, bench.scale.rebuild_events // SCANS))(place)
    async with bench.service(place) as service:
        await service.start(*["worker"] * _WORKERS, "sealer")
        seconds = await until_empty(place)
        await until_false(lambda: place.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)"))
    bench.say(f"appended in {seconds:.0f} s")

"""The memory of all roles as `up` runs them, idle and at full load; the server's is not in it."""

import asyncio
from typing import Final

from tests.bench.bench import Bench, child
from tests.bench.report import Row, rate
from tests.bench.subscriber import subscriber
from tests.bench.whole import whole_service

_SETTLED_SECONDS: Final = 10.0
_IDLE_MB: Final = 160
_LOADED_MB: Final = 260
_LOOK_SECONDS: Final = 0.5


async def measure(bench: Bench) -> list[Row]:
    idle, loaded = [], []
    for run in range(bench.scale.runs):
        async with (
            bench.server.database() as place,
            subscriber() as url,
            whole_service(bench, place) as service,
        ):
            await asyncio.sleep(_SETTLED_SECONDS)
            idle.append(service.pss_bytes() / 2**20)
            await service.post("/v1/subscriptions", {"url": url})
            seconds = bench.scale.closed_seconds
            told = {
                "mode": "closed",
                "traffic": "mixed",
                "series": run,
                "count": int(12_000 * seconds),
                "wires": 64,
                "seconds": seconds,
            }
            load = asyncio.create_task(child("load", told={**told, "port": service.port}))
            most = 0.0
            while not load.done():
                most = max(most, service.pss_bytes() / 2**20)
                await asyncio.wait([load], timeout=_LOOK_SECONDS)
            await load
            loaded.append(most)
        bench.say(f"memory {run + 1}: {idle[-1]:.0f} MB idle, {loaded[-1]:.0f} MB at most")
    return [
        Row(
            "PSS of `up` without PostgreSQL, idle",
            rate(idle, " MB"),
            f"<= {_IDLE_MB} MB",
            sorted(idle)[len(idle) // 2] <= _IDLE_MB,
        ),
        Row(
            "... at full load",
            rate(loaded, " MB"),
            f"<= {_LOADED_MB} MB",
            sorted(loaded)[len(loaded) // 2] <= _LOADED_MB,
        ),
    ]

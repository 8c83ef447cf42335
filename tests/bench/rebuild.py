"""The shipment projection anew from the log, alone and next to traffic: how fast, and whether what
comes out is what was there.
"""

import asyncio
import os
import time
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Final

from statesvc.shipments.rebuild.rebuild import Rebuild
from tests.bench.bench import Bench
from tests.bench.drain import drain_in_place
from tests.bench.inbox import put_all
from tests.bench.long_log import long_log
from tests.bench.processor import own_cpu_seconds, server_cpu_seconds
from tests.bench.report import Row, rate
from tests.bench.server import Place
from tests.bench.traffic import alerts

_BAR: Final = 100_000
_BESIDE_MESSAGES: Final = 20_000


async def measure(bench: Bench) -> list[Row]:
    wanted = bench.scale.rebuild_events
    template = await long_log(bench)
    alone: list[float] = []
    cpu: list[float] = []
    drifting = 0
    for _ in range(bench.scale.runs):
        async with bench.server.database(template) as place:
            task = _task(place)
            data = Path(await place.value("SHOW data_directory"))
            began, used = time.perf_counter(), own_cpu_seconds() + server_cpu_seconds(data)
            events = await task.rebuild()
            alone.append(events / (time.perf_counter() - began))
            cpu.append((own_cpu_seconds() + server_cpu_seconds(data) - used) * 1e6 / events)
            drifting += len((await task.compare())[1])
            bench.say(
                f"rebuild alone: {events:,} events, {alone[-1]:,.0f} events/s, {cpu[-1]:.1f} us an"
                " event"
            )
    beside, told, differing, back = await _beside_traffic(bench, template)
    drifting += differing
    return [
        Row(
            f"rebuild of {wanted:,} events, alone",
            rate(alone, " events/s"),
            ">= 100,000 events/s",
            sorted(alone)[len(alone) // 2] >= 100_000,
        ),
        Row("... processor time, server included", f"{median(cpu):.1f} us an event"),
        Row(
            f"... next to a worker with {_BESIDE_MESSAGES:,} messages", rate([beside], " events/s")
        ),
        Row(
            "... shipments that differ afterwards, also after a rollback",
            str(drifting + back),
            "0",
            drifting + back == 0,
        ),
        Row("... notifications that it sent", str(told), "0", told == 0),
    ]


def _task(place: Place) -> Rebuild:
    return Rebuild(
        owner_dsn=place.owner,
        actor="bench",
        processes=os.cpu_count() or 1,
        progress=lambda *_: None,
    )


async def _beside_traffic(bench: Bench, template: str) -> tuple[float, int, int, int]:
    """Return events a second, notifications that were not the traffic's, shipments that differ, and
    those after a rollback.
    """
    async with bench.server.database(template) as place:
        task = _task(place)
        await put_all(place, islice(alerts(_BESIDE_MESSAGES, series=7), _BESIDE_MESSAGES))
        before = await place.value("SELECT count(*) FROM statesvc.notification")
        moved = "SELECT count(*) FROM statesvc.transition"
        transitions = await place.value(moved)
        working = asyncio.create_task(drain_in_place(bench, place))
        began = time.perf_counter()
        events = await task.rebuild()
        speed = events / (time.perf_counter() - began)
        await working
        told = (
            await place.value("SELECT count(*) FROM statesvc.notification")
            - before
            - (await place.value(moved) - transitions)
        )
        _, drift = await task.compare()
        await task.roll_back()
        _, back = await task.compare()
        return speed, told, len(drift), len(back)

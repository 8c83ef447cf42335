"""The shipment projection anew from the log, alone and beside traffic: how fast, and whether what comes out is what was there."""

import asyncio
import os
import time
from functools import partial
from itertools import islice
from typing import Final

from statesvc.rebuild.run import Rebuild
from tests.bench.bench import Bench
from tests.bench.drain import drain_in_place
from tests.bench.inbox import put_all, waiting
from tests.bench.report import Row, rate
from tests.bench.server import Place
from tests.bench.traffic import SCANS, alerts, histories

_SEED_MESSAGES: Final = 1_000
_BESIDE_MESSAGES: Final = 20_000
_COPY: Final = """
WITH parcel AS (SELECT shipment_id AS old, n, gen_random_uuid() AS new FROM statesvc.stream, generate_series(1, %s) n),
grown AS (
    INSERT INTO statesvc.stream
    SELECT p.new, s.carrier_id, s.number, p.n::text, s.version, s.head_hash, s.recorded_at, s.first_recorded_at, s.sealed_key, s.erased_at
    FROM parcel p JOIN statesvc.stream s ON s.shipment_id = p.old
), told AS (
    INSERT INTO statesvc.shipment
    SELECT p.new, s.version, s.recorded_at, s.first_recorded_at, s.last_event_at, s.status_since, s.delivered_at, s.attempts, s.terminal,
        s.carrier_id, s.number, s.tracking_number, s.discriminator, s.status, s.reason, s.flags, s.estimated_delivery, s.signed_by_event_id,
        s.state
    FROM parcel p JOIN statesvc.shipment s ON s.shipment_id = p.old
)
INSERT INTO statesvc.event
SELECT p.new, e.version, e.recorded_at, e.received_at, e.occurred_at, e.message_id, e.batch_id, e.ordinal, e.carrier_id, e.event_id, e.kind,
    e.status, e.carrier_code, e.by_category, e.normalizer, e.leaf_hash, e.canonical, e.sealed_part
FROM parcel p JOIN statesvc.event e ON e.shipment_id = p.old
"""
"""The same histories again under other ids: what the fold reads of them does not name their shipment."""


async def measure(bench: Bench) -> list[Row]:
    """The rows of this part."""
    wanted = bench.scale.rebuild_events
    template = await bench.server.filled("bench_rebuild", partial(_fill, bench, wanted // (_SEED_MESSAGES * SCANS) - 1))
    alone: list[float] = []
    drifting = 0
    for _ in range(bench.scale.runs):
        async with bench.server.database(template) as place:
            task = _task(place)
            began = time.perf_counter()
            events = await task.rebuild()
            alone.append(events / (time.perf_counter() - began))
            drifting += len((await task.compare())[1])
            bench.say(f"rebuild alone: {events:,} events, {alone[-1]:,.0f} events/s")
    beside, told, differing, back = await _beside_traffic(bench, template)
    drifting += differing
    return [
        Row(
            f"rebuild of {wanted:,} events, alone", rate(alone, " events/s"), ">= 50,000 events/s", sorted(alone)[len(alone) // 2] >= 50_000
        ),
        Row(f"... beside a worker with {_BESIDE_MESSAGES:,} messages", rate([beside], " events/s")),
        Row("... shipments that differ afterwards, also after a rollback", str(drifting + back), "0", drifting + back == 0),
        Row("... notifications that it sent", str(told), "0", told == 0),
    ]


async def _fill(bench: Bench, copies: int, place: Place) -> None:
    await waiting(partial(histories, _SEED_MESSAGES))(place)
    await drain_in_place(bench, place)
    await place.execute(_COPY.replace("%s", str(max(copies, 1))).encode())


def _task(place: Place) -> Rebuild:
    return Rebuild(owner_dsn=place.owner, actor="bench", processes=os.cpu_count() or 1, progress=lambda *_: None)


async def _beside_traffic(bench: Bench, template: str) -> tuple[float, int, int, int]:
    """Events a second, notifications that were not the traffic's, shipments that differ, and those after a rollback."""
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
        told = await place.value("SELECT count(*) FROM statesvc.notification") - before - (await place.value(moved) - transitions)
        _, drift = await task.compare()
        await task.roll_back()
        _, back = await task.compare()
        return speed, told, len(drift), len(back)

"""Costs of sealing for the whole service, with it and without it in turn, and how soon after its
append an entry can be proved.
"""

import asyncio
import bisect
import time
from collections import deque
from collections.abc import Mapping
from functools import partial
from statistics import median, quantiles
from typing import Final

from psycopg import AsyncConnection

from tests.acceptance.processes import BOOTSTRAP_KEY, until_false
from tests.bench.bench import Bench, child
from tests.bench.cost import Cost, drain_cost
from tests.bench.inbox import waiting
from tests.bench.report import Row, milliseconds, percentile
from tests.bench.server import Place
from tests.bench.traffic import SCANS, alerts, histories

_NO_QUEUE: Final = "DROP TRIGGER await_sealing ON statesvc.batch"
_NO_KEYS: Final = tuple(
    f"DROP INDEX statesvc.{kind}_batch"
    for kind in ("event", "conflict", "transition", "fanout", "attempt")
)
_WITHOUT: Final = {"sealed": (), "unsealed": (_NO_QUEUE,), "keyless": (_NO_QUEUE, *_NO_KEYS)}
"""Variants: as it is; as if there were no sealer, so that batches are not queued; and as if nobody
read entries by their batch either.
"""
_PAIRS: Final = 3
"""In each run, because a shared machine is faster one minute than the next: what stands
side by side is compared.
"""
_LOOK_SECONDS: Final = 0.02
_WIRES: Final = 256


async def measure(bench: Bench) -> list[Row]:
    scale = bench.scale
    loads = {
        "UPS alerts, 1 scan": await bench.server.filled(
            "bench_alerts", waiting(partial(alerts, scale.alerts // _PAIRS))
        ),
        f"FedEx histories, {SCANS} new scans": await bench.server.filled(
            "bench_histories", waiting(partial(histories, scale.histories))
        ),
    }
    rows = []
    for name, template in loads.items():
        costs: dict[str, list[Cost]] = {variant: [] for variant in _WITHOUT}
        order = deque(_WITHOUT)
        for turn in range(scale.runs * _PAIRS):
            # each is first as often as the others
            order.rotate()
            for variant in order:
                cost = await drain_cost(
                    bench, template, seals=variant == "sealed", altered=_WITHOUT[variant]
                )
                costs[variant].append(cost)
                bench.say(
                    f"sealing {turn + 1}, {name}, {variant}: {cost.cpu:.1f} us, {cost.wal:,.0f}"
                    " bytes an event"
                )
        rows += _rows(name, costs)
    return rows + await _proofs(bench)


def _rows(name: str, costs: Mapping[str, list[Cost]]) -> list[Row]:
    def more(field: str, unit: str, after: str, before: str) -> tuple[str, float]:
        one, other = (
            [getattr(cost, field) for cost in costs[variant]] for variant in (after, before)
        )
        shares = [mine / its - 1 for mine, its in zip(one, other, strict=True)]
        # of the sums: a drain is off by a tenth either way, and the median of so
        # few pairs by half of that
        share, (low, _, high) = sum(one) / sum(other) - 1, quantiles(shares, n=4)
        half = f"half of {len(shares)} pairs {low:+.1%} to {high:+.1%}"
        return f"{share:+.1%} ({half}; {median(other):,.1f} {unit} an event without)", share

    rows = []
    for what, field, unit in (("CPU", "cpu", "us"), ("WAL", "wal", "bytes")):
        measured, share = more(field, unit, "sealed", "unsealed")
        rows.append(Row(f"sealing, {name}: {what}", measured, "<= 5 %", share <= 0.05))
        measured, _ = more(field, unit, "sealed", "keyless")
        rows.append(Row(f"sealing and the keys by batch, {name}: {what}", measured))
    own = median(cost.sealer for cost in costs["sealed"])
    return [*rows, Row(f"sealing, {name}: of it the sealer's process", f"{own:.1f} us an event")]


async def _proofs(bench: Bench) -> list[Row]:
    """Measure from the append to the published checkpoint that covers it, at the rate
    that the promise names.
    """
    scale = bench.scale
    async with bench.server.database() as place, bench.service(place) as service:
        await service.start("api", "worker", "sealer")
        seen: list[tuple[int, float]] = []
        looking = asyncio.create_task(_watch(place, seen))
        await child(
            "load",
            told={
                "mode": "open",
                "traffic": "alerts",
                "series": 0,
                "count": scale.visible_rate * scale.visible_seconds,
                "rate": scale.visible_rate,
                "wires": _WIRES,
                "port": service.api.port,
                "key": BOOTSTRAP_KEY,
            },
        )
        await service.drained()
        await until_false(lambda: place.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)"))
        await asyncio.sleep(1)
        looking.cancel()
        lags = sorted(await _lags(place, seen))
    name = f"append -> checkpoint that proves it, {scale.visible_rate:,} events/s"
    return [
        Row(f"{name}: p50", milliseconds([percentile(lags, 0.5)])),
        Row(f"{name}: p99", milliseconds([percentile(lags, 0.99)])),
        Row(f"{name}: max", milliseconds([lags[-1]]), "<= 1 s", lags[-1] <= 1.0),
    ]


async def _watch(place: Place, seen: list[tuple[int, float]]) -> None:
    """Note when each size was first there to be read."""
    async with await AsyncConnection.connect(place.service, autocommit=True) as connection:
        while True:
            row = await (
                await connection.execute("SELECT max(tree_size) FROM statesvc.checkpoint")
            ).fetchone()
            size = row[0] if row is not None else None
            if size is not None and (not seen or seen[-1][0] < size):
                seen.append((size, time.time()))
            await asyncio.sleep(_LOOK_SECONDS)


async def _lags(place: Place, seen: list[tuple[int, float]]) -> list[float]:
    sizes = [size for size, _ in seen]
    async with await AsyncConnection.connect(place.service, autocommit=True) as connection:
        cursor = await connection.execute(
            "SELECT first_index + entries, extract(epoch FROM recorded_from)::float8 FROM"
            " statesvc.sealed_batch"
        )
        return [
            seen[bisect.bisect_left(sizes, end)][1] - recorded_at
            async for end, recorded_at in cursor
        ]

"""The load, in a process of its own.

Reads what to do as JSON from standard input, writes what it saw as JSON.

open: requests at a fixed rate whatever the answers; a request's time runs from when it was due, so
a stall of the service (or of this process) counts in full. At most `wires` are under way; one that
finds no free wire waits, and its waiting counts. closed: `wires` connections, each sends the next
as soon as it has an answer; until the bodies or the seconds are over.
"""

import asyncio
import gc
import json
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

import uvloop

from tests.bench.report import percentile
from tests.bench.traffic import Push, alerts, mixed
from tests.bench.wire import Wire, connect, post


def requests(told: dict[str, Any]) -> Iterator[bytes]:
    kind, count, series = told["traffic"], told["count"], told["series"]
    pushes: Iterator[Push] = (
        mixed(count, series=series) if kind == "mixed" else alerts(count, series=series)
    )
    path = told.get("path")
    return (post(path or f"/v1/webhooks/{carrier_id}", body) for carrier_id, body in pushes)


def repeated(once: Sequence[bytes], copies: int, together: int) -> Iterator[bytes]:
    """Yield every request `copies` times; those of `together` neighbours come round after round."""
    for start in range(0, len(once), together):
        for _ in range(copies):
            yield from once[start : start + together]


class LoadCounts:
    """Results of a load."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.late: list[float] = []
        self.statuses: Counter[int] = Counter()

    def document(self, elapsed: float) -> dict[str, Any]:
        self.seconds.sort()
        self.late.sort()
        return {
            "count": len(self.seconds),
            "elapsed": elapsed,
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "p50": percentile(self.seconds, 0.5),
            "p99": percentile(self.seconds, 0.99),
            "p999": percentile(self.seconds, 0.999),
            "max": percentile(self.seconds, 1.0),
            "late_p99": percentile(self.late, 0.99),
        }


async def open_loop(
    ready: Sequence[bytes], *, port: int, rate: float, wires: int
) -> dict[str, Any]:
    """Send at `rate` a second."""
    # in turn: the service closes one that stays without a request
    idle = deque([await connect(port) for _ in range(wires)])
    waiting: deque[tuple[bytes, float]] = deque()
    counts, all_done = LoadCounts(), asyncio.Event()

    def fly(wire: Wire, request: bytes, due: float) -> None:
        counts.late.append(perf_counter() - due)
        wire.send(request, lambda wire, status, _: landed(wire, status, due))

    def landed(wire: Wire, status: int, due: float) -> None:
        counts.seconds.append(perf_counter() - due)
        counts.statuses[status] += 1
        if waiting and status:
            fly(wire, *waiting.popleft())
        elif status:
            idle.append(wire)
        if len(counts.seconds) == len(ready):
            all_done.set()

    started = perf_counter() + 0.1
    for place, request in enumerate(ready):
        due = started + place / rate
        if (early := due - perf_counter()) > 0:
            await asyncio.sleep(early)
        if idle:
            fly(idle.popleft(), request, due)
        else:
            waiting.append((request, due))
    async with asyncio.timeout(120):
        await all_done.wait()
    for wire in idle:
        wire.close()
    return counts.document(perf_counter() - started)


async def closed_loop(
    source: Iterator[bytes], *, port: int, wires: int, seconds: float | None
) -> dict[str, Any]:
    """Send as fast as the answers come."""
    counts, all_done = LoadCounts(), asyncio.Event()
    flying = 0
    started = perf_counter()
    ends = started + seconds if seconds else float("inf")

    def fly(wire: Wire) -> None:
        nonlocal flying
        sent = perf_counter()
        request = next(source, None) if sent < ends else None
        if request is not None:
            flying += 1
            wire.send(request, lambda wire, status, _: landed(wire, status, sent))

    def landed(wire: Wire, status: int, sent: float) -> None:
        nonlocal flying
        flying -= 1
        counts.seconds.append(perf_counter() - sent)
        counts.statuses[status] += 1
        if status:
            fly(wire)
        if not flying:
            all_done.set()

    connections = [await connect(port) for _ in range(wires)]
    for wire in connections:
        fly(wire)
    await all_done.wait()
    elapsed = perf_counter() - started
    for wire in connections:
        wire.close()
    return counts.document(elapsed)


async def main() -> None:
    told = json.load(sys.stdin)
    ready = list(requests(told))
    gc.collect()
    gc.freeze()
    port, wires = told["port"], told["wires"]
    match told["mode"]:
        case "open":
            seen = await open_loop(ready, port=port, rate=told["rate"], wires=wires)
        case "closed":
            source = repeated(ready, told.get("copies", 1), wires)
            seen = await closed_loop(source, port=port, wires=wires, seconds=told.get("seconds"))
        case unknown:
            raise ValueError(unknown)
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    uvloop.run(main())

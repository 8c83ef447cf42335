"""Durable throughput: our webhook, the same handler without a database, and one INSERT a request;
on this disk and on a slow one.
"""

import asyncio
import json
import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.bench.bench import ROOT, Bench, child, rotated
from tests.bench.report import Row, milliseconds, rate, times
from tests.bench.server import Place

_WIRES = 64
_BODIES_A_SECOND = 12_000
"""Made ahead; more than any contender takes."""
_CONTENDERS = ("ours", "limit", "peer", "direct")
_NAMES = {
    "ours": "POST webhook, durable",
    "limit": "the same handler without a database (limit)",
    "peer": "one INSERT a request, aiohttp and a pool of 8 (peer)",
    "direct": "bare INSERTs without HTTP, 8 connections",
}


async def measure(bench: Bench) -> list[Row]:
    rows = []
    for slow_disk in (False, True):
        disk = "commit_delay 2 ms" if slow_disk else "this disk"
        contenders = [name for name in _CONTENDERS if name != "limit" or not slow_disk]
        throughput: dict[str, list[float]] = defaultdict(list)
        latency: dict[str, list[float]] = defaultdict(list)
        for run in range(bench.scale.runs):
            for name in rotated(contenders, run):
                seen = await _run(bench, name, run, slow_disk=slow_disk)
                throughput[name].append(seen["count"] / seen["elapsed"])
                latency[name].append(seen.get("p99", 0.0))
                bench.say(
                    f"ingest {run + 1}, {disk}, {name}: {throughput[name][-1]:,.0f}/s"
                    f" {seen.get('statuses', '')}"
                )
        for name in contenders:
            tail = "" if name == "direct" else f", p99 {milliseconds(latency[name])}"
            rows.append(Row(f"{_NAMES[name]}, {disk}", rate(throughput[name]) + tail))
        rows += _slow(throughput) if slow_disk else _fast(throughput)
    return rows


def _fast(throughput: dict[str, list[float]]) -> list[Row]:
    to_peer, to_limit = (
        times(throughput["ours"], throughput["peer"]),
        times(throughput["ours"], throughput["limit"]),
    )
    return [
        Row(
            "ACK throughput against one INSERT a request",
            f"{to_peer:.2f} x",
            ">= 3 x",
            to_peer >= 3,
        ),
        Row(
            "ACK throughput against the handler without a database",
            f"{to_limit:.2f} x",
            ">= 0.5 x",
            to_limit >= 0.5,
        ),
    ]


def _slow(throughput: dict[str, list[float]]) -> list[Row]:
    to_direct, to_peer = (
        times(throughput["ours"], throughput["direct"]),
        times(throughput["ours"], throughput["peer"]),
    )
    return [
        Row(
            "ingest on a slow disk against bare INSERTs without HTTP",
            f"{to_direct:.2f} x",
            ">= 0.9 x",
            to_direct >= 0.9,
        ),
        Row("ingest on a slow disk against one INSERT a request", f"{to_peer:.2f} x"),
    ]


async def _run(bench: Bench, name: str, run: int, *, slow_disk: bool) -> dict[str, Any]:
    seconds = bench.scale.closed_seconds
    async with bench.server.database(slow_disk=slow_disk) as place:
        match name:
            case "ours":
                async with bench.service(place) as service:
                    await service.start("api")
                    return await _load(service.api.port, seconds, run)
            case "direct":
                seen: dict[str, Any] = await child("direct", place.owner, str(seconds))
                return seen
            case _:
                async with _bare(name, place) as port:
                    return await _load(port, seconds, run)


async def _load(port: int, seconds: float, run: int) -> dict[str, Any]:
    count = int(_BODIES_A_SECOND * seconds)
    told = {
        "mode": "closed",
        "traffic": "alerts",
        "series": run % 24,
        "count": count,
        "wires": _WIRES,
        "port": port,
        "seconds": seconds,
    }
    seen: dict[str, Any] = await child("load", told=told)
    if set(seen["statuses"]) != {"200"}:
        raise RuntimeError(f"not every answer was 200: {seen['statuses']}")
    return seen


@asynccontextmanager
async def _bare(kind: str, place: Place) -> AsyncIterator[int]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.bare", kind, place.owner),
        cwd=ROOT,
        env={**os.environ, "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "1"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield json.loads(await process.stdout.readline())["port"]
    finally:
        process.stdin.close()
        await process.wait()

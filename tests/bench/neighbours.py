"""ACK latency next to whoever else uses the service, legitimate or hostile, against the same load
undisturbed in the same run.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.http.keys.key_store import Scope, create_key
from tests.acceptance.processes import ROOT
from tests.bench.bench import Bench, child
from tests.bench.drain import until_empty
from tests.bench.long_shipment import LONG_SHIPMENT, submit_long_shipment
from tests.bench.report import Row, medians, milliseconds
from tests.bench.server import Place
from tests.bench.whole import WholeService, whole_service

_RATE: Final = 500
_WIRES: Final = 64
_LEAD_SECONDS: Final = 1.0
UNDISTURBED: Final = "undisturbed"
# without a secret the bench's settings would take its bodies unsigned
_SETTINGS: Final = {"STATESVC_WEBHOOK_SECRET_17TRACK": "bench-17track"}
_AT_MOST: Final = 2.0
_QUIET_SECONDS: Final = 300
_IDLE_SECONDS: Final = 0.05
"""Processor time that ingress uses in a second in which nobody pushes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturber:
    """A child `kind` with what it is told and `keys` of its own to call with, or a `command` of
    statesvc that is repeated.
    """

    kind: str = ""
    told: Mapping[str, Any] | None = None
    keys: int = 1
    command: tuple[str, ...] = ()


DISTURBERS: Final[Mapping[str, Disturber]] = {
    "evidence and audit of 3,000 events, 4 readers": Disturber(
        kind="evidence", told={"path": LONG_SHIPMENT}
    ),
    # each within the limits of a key: 1,000 calls a second and 100 at a time, 20 streams
    "1,000 list pages/s": Disturber(kind="lists", keys=10),
    "100 streams": Disturber(kind="streams", keys=10),
    "1,100 half-open connections": Disturber(kind="half_open", told={"connections": 1_100}),
    "3,000 half-open connections": Disturber(kind="half_open", told={"connections": 3_000}),
    "1,000 bodies of 1 MiB at a time": Disturber(kind="bodies"),
    "54 anonymous bodies of 1 MiB/s for 17TRACK": Disturber(kind="17track"),
    "rebuild": Disturber(command=("rebuild", "shipment")),
    "verify": Disturber(command=("verify",)),
}


async def measure(bench: Bench) -> list[Row]:
    seen: dict[str, list[dict[str, Any]]] = {}
    async with (
        bench.server.database() as place,
        whole_service(bench, place, **_SETTINGS) as service,
    ):
        await submit_long_shipment(service)
        for run in range(bench.scale.runs):
            for number, name in enumerate((UNDISTURBED, *DISTURBERS)):
                async with _disturbed(bench, place, service, name) as neighbour:
                    await asyncio.sleep(_LEAD_SECONDS)
                    series = (run * (len(DISTURBERS) + 1) + number) % 26
                    result = await _load(bench, service, series)
                # what one neighbour left behind must not disturb the next load
                await until_empty(place)
                await _until_quiet(service)
                result["neighbour"] = neighbour
                seen.setdefault(name, []).append(result)
                bench.say(
                    f"neighbours {run + 1}, {name}: p99 {result['p99'] * 1e3:.1f} ms,"
                    f" {result['statuses']}; the neighbour: {neighbour}"
                )
    return _rows(seen)


def _rows(seen: dict[str, list[dict[str, Any]]]) -> list[Row]:
    alone = median(medians(seen[UNDISTURBED], "p99"))
    rows = [
        Row(
            f"ACK p99 at {_RATE}/s, {UNDISTURBED}",
            milliseconds(medians(seen[UNDISTURBED], "p99")),
            figure=alone * 1e3,
        )
    ]
    for name in DISTURBERS:
        p99 = medians(seen[name], "p99")
        refused = sum(
            count
            for run in seen[name]
            for status, count in run["statuses"].items()
            if status != "200"
        )
        measured = f"{milliseconds(p99)}, {median(p99) / alone:.1f} x, refused {refused:,}"
        met = median(p99) <= _AT_MOST * alone and not refused
        rows.append(
            Row(
                f"... next to {name}",
                measured,
                f"<= {_AT_MOST:.0f} x, 0 refused",
                met,
                figure=median(p99) * 1e3,
            )
        )
    return rows


async def _load(bench: Bench, service: WholeService, series: int) -> dict[str, Any]:
    count = int(_RATE * bench.scale.neighbour_seconds)
    told = {
        "mode": "open",
        "traffic": "alerts",
        "series": series,
        "count": count,
        "rate": _RATE,
        "wires": _WIRES,
        "port": service.port,
    }
    seen: dict[str, Any] = await child("load", told=told)
    return seen


async def _until_quiet(service: WholeService) -> None:
    """Wait until it is quiet: bodies whose clients are gone are stored all the same, which takes as
    long as the clients were there.
    """
    async with asyncio.timeout(_QUIET_SECONDS):
        used = float("-inf")
        while (now := service.cpu_seconds()["ingress"]) > used + _IDLE_SECONDS:
            used = now
            await asyncio.sleep(1)


@asynccontextmanager
async def _disturbed(
    bench: Bench, place: Place, service: WholeService, name: str
) -> AsyncIterator[dict[str, Any]]:
    """Let the neighbour work for the time of the block; afterwards the answer says what it did."""
    done: dict[str, Any] = {}
    match DISTURBERS.get(name):
        case None:
            yield done
        case Disturber(command=()) as neighbour:
            keys = await _keys(place, neighbour.keys)
            told = {
                "port": service.port,
                "keys": keys,
                "kind": neighbour.kind,
                **(neighbour.told or {}),
            }
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.bench.neighbour"),
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdin is not None
            process.stdin.write(json.dumps(told).encode() + b"\n")
            try:
                yield done
            finally:
                # `communicate` closes it from Python 3.12 on
                process.stdin.close()
                output, _ = await process.communicate()
                done.update(json.loads(output or "{}"))
        case Disturber(command=command):
            repeated = asyncio.create_task(_repeat(bench, place, command, done))
            try:
                yield done
            finally:
                repeated.cancel()
                (ended,) = await asyncio.gather(repeated, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended


async def _keys(place: Place, count: int) -> list[str]:
    async with await AsyncConnection.connect(place.service) as connection:
        made = [
            await create_key(
                connection,
                name=f"reader {number}",
                scopes=[Scope.READ, Scope.AUDIT, Scope.PII],
                created_by="bench",
            )
            for number in range(count)
        ]
    return [key for _, key in made]


async def _repeat(
    bench: Bench, place: Place, command: tuple[str, ...], done: dict[str, Any]
) -> None:
    environment = bench.service(place).environment
    while True:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "statesvc", *command),
            cwd=ROOT,
            env=dict(environment),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            exit_code = await process.wait()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if exit_code:
            raise RuntimeError(f"{' '.join(command)} ended with {exit_code}")
        done[f"exit {exit_code}"] = done.get(f"exit {exit_code}", 0) + 1

"""Costs of cells: one installation alone, and several at the same time with as many messages each.

All have servers of their own, behind one nginx. Three carriers push: all to the one cell, or each to the cell that the directory gives it.

`python -m tests.bench.cells` prints processor milliseconds a message by part, write-ahead log and bytes of each table. It counts
processor seconds, not time: the cells share the machine's cores. With `--core-each` they do not: each has a core to itself, and a program
that only computes keeps the others busy, since cores share caches.

"""

import argparse
import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import aiohttp
from psycopg import AsyncConnection

from statesvc.cells.directory import CellDirectory, checked_directory
from statesvc.database.embedded import attach
from tests.acceptance.processes import BOOTSTRAP_KEY, ROOT
from tests.bench.processor import command_line, descendants, server_cpu_seconds
from tests.bench.traffic import Push, single_scans
from tests.bench.volume import TABLE_SIZES
from tests.world.ports import free_port, port_for_up
from tests.world.proxies import nginx_before

CARRIERS: Final = ("ups", "fedex", "dhl_unified")
CONNECTIONS: Final = 16
START_SECONDS: Final = 180
DRAIN_SECONDS: Final = 1200
MEASURED_FROM: Final = 0.2
"""The share of the messages that warms up: catalogues, plans, pools."""
_EVENTS: Final = "SELECT count(*) FROM statesvc.event"
_WRITTEN: Final = "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class RunningCell:
    """One `statesvc up`."""

    process: asyncio.subprocess.Process
    port: int
    data: Path

    def used(self) -> dict[str, float]:
        """Return processor seconds so far, by role; the server's together."""
        seconds: dict[str, float] = defaultdict(float)
        for pid, used in descendants(self.process.pid).items():
            words = command_line(pid).split()
            seconds[words[1] if len(words) > 1 and words[0] == "statesvc" else "supervisor"] += used
        (pidfile,) = self.data.rglob("postmaster.pid")
        seconds["PostgreSQL"] += server_cpu_seconds(pidfile.parent)
        return seconds

    async def value(self, statement: str) -> Any:
        return (await self.rows(statement))[0][0]

    async def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Query as the role that owns the tables."""
        dsns = attach(self.data)
        assert dsns is not None
        async with await AsyncConnection.connect(
            dsns.superuser or dsns.owner, autocommit=True
        ) as connection:
            return await (await connection.execute(statement.encode())).fetchall()


def together(used: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Sum over all cells, by role."""
    total: dict[str, float] = defaultdict(float)
    for cell in used:
        for part, seconds in cell.items():
            total[part] += seconds
    return total


async def start(folder: Path, *, port: int | None = None, core: int | None = None) -> RunningCell:
    """Start a cell ready for messages; with a `port`, once more on the data that is there; with a `core`, on that one alone."""
    folder.mkdir(exist_ok=True)  # noqa: ASYNC240 - nothing else runs yet
    port = port or port_for_up()
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STATESVC_", "DATABASE_URL"))
    }
    environment |= {
        "STATESVC_DATA_DIR": str(folder),
        "STATESVC_BOOTSTRAP_KEY": BOOTSTRAP_KEY,
        "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "1",
    }
    with (folder / "output").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(*_on(core), sys.executable, "-m", "statesvc", "up", "--port", str(port)),
            cwd=ROOT,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    async with asyncio.timeout(START_SECONDS), aiohttp.ClientSession() as session:
        while True:
            assert process.returncode is None, (folder / "output").read_text()
            try:
                async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    if answer.ok:
                        return RunningCell(process, port, folder)
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)


def _on(core: int | None) -> tuple[str, ...]:
    return () if core is None else ("taskset", "--cpu-list", str(core))


@asynccontextmanager
async def _busy(cores: Iterable[int]) -> AsyncIterator[None]:
    """Run a program on each of these cores that does nothing but compute."""
    programs = [
        await asyncio.create_subprocess_exec(*_on(core), sys.executable, "-c", "while True: pass")
        for core in cores
    ]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            await program.wait()


def directory_of(cells: Mapping[str, RunningCell]) -> CellDirectory:
    """Distribute the carriers in turn over the cells."""
    names = list(cells)
    return checked_directory(
        {
            "epoch": 1,
            "default": names[0],
            "cells": {
                name: {"urls": [f"http://127.0.0.1:{cell.port}"]} for name, cell in cells.items()
            },
            "carriers": {
                carrier_id: names[place % len(names)] for place, carrier_id in enumerate(CARRIERS)
            },
        },
        "the bench's directory",
    )


def loads(directory: CellDirectory, count: int) -> dict[str, list[Push]]:
    """Return so many messages for each cell, of its carriers in turn."""
    found: dict[str, list[Push]] = {}
    for name in directory.cells:
        carriers = directory.carriers_of(name)
        each = [
            list(single_scans(-(-count // len(carriers)), carrier_id)) for carrier_id in carriers
        ]
        found[name] = [one for turn in zip(*each, strict=True) for one in turn][:count]
    return found


async def push(cell: RunningCell, pushes: list[Push], *, rate: float, port: int) -> None:
    """Post all to the proxy's port, so many a second, and return when nothing waits in the cell any more."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    waiting = iter(enumerate(pushes))
    headers = {"Authorization": f"Bearer {BOOTSTRAP_KEY}"}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session:

        async def post() -> None:
            for number, (carrier_id, body) in waiting:
                await asyncio.sleep(started + number / rate - loop.time())
                async with session.post(f"/v1/webhooks/{carrier_id}", data=body) as answer:
                    assert answer.ok, await answer.text()

        await asyncio.gather(*(post() for _ in range(CONNECTIONS)))
        async with asyncio.timeout(DRAIN_SECONDS):
            while await cell.value("SELECT EXISTS (SELECT FROM statesvc.inbox)"):  # noqa: ASYNC110 - other processes empty it
                await asyncio.sleep(0.1)
            while await cell.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def measure(
    count: int, *, cells: int, rate: float, core_each: bool
) -> tuple[float, Mapping[str, float]]:
    """Measure processor milliseconds a message in all, and by part. The cells work at the same time, each as the only one would."""
    cores = sorted(os.sched_getaffinity(0)) if core_each else []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="statesvc-cells-")))
        names = [f"cell{number}" for number in range(cells)]
        places = zip_longest(names, cores[:cells])
        running = dict(
            zip(
                names,
                await asyncio.gather(*(start(folder / name, core=core) for name, core in places)),
                strict=True,
            )
        )
        stack.push_async_callback(_stop, running.values())
        directory, port = directory_of(running), free_port()
        proxy = await stack.enter_async_context(nginx_before(directory, folder, port=port))
        parts = loads(directory, count)
        warm = int(count * MEASURED_FROM)
        await asyncio.gather(
            *(
                push(running[name], part[:warm], rate=rate, port=port)
                for name, part in parts.items()
            )
        )
        await stack.enter_async_context(_busy(cores[cells:]))
        before = _used(running, proxy)
        events, lsns = await _sum(running, _EVENTS), await _sum(running, _WRITTEN)
        await asyncio.gather(
            *(
                push(running[name], part[warm:], rate=rate, port=port)
                for name, part in parts.items()
            )
        )
        used = _used(running, proxy)
        measured = (count - warm) * cells
        more_events, wal = (
            await _sum(running, _EVENTS) - events,
            await _sum(running, _WRITTEN) - lsns,
        )
        _say(
            f"{cells} cells, {measured:,} messages, {more_events:,} events; {wal / more_events:,.0f} bytes of log an event"
        )
        if cells == 1:
            (alone,) = running.values()
            total = await alone.value(_EVENTS)
            for name, size in (await alone.rows(TABLE_SIZES))[:24]:
                _say(f"  {name:24} {size / total:8.1f} bytes an event")
        by_part = {
            part: 1000 * (seconds - before.get(part, 0.0)) / measured
            for part, seconds in used.items()
        }
        return sum(by_part.values()), by_part


def _used(
    running: Mapping[str, RunningCell], proxy: asyncio.subprocess.Process
) -> dict[str, float]:
    return {
        **together(cell.used() for cell in running.values()),
        "nginx": sum(descendants(proxy.pid).values()),
    }


async def _sum(running: Mapping[str, RunningCell], statement: str) -> int:
    return sum([await cell.value(statement) for cell in running.values()])


async def _stop(cells: Iterable[RunningCell]) -> None:
    for cell in cells:
        cell.process.terminate()
    for cell in cells:
        await cell.process.wait()


async def main() -> None:
    """Print one arrangement after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=8_000, help="for each cell")
    parser.add_argument("--rate", type=float, default=200.0, help="messages a second for each cell")
    parser.add_argument("--cells", type=int, nargs="+", default=[1, 2, 3], choices=[1, 2, 3])
    parser.add_argument(
        "--core-each",
        action="store_true",
        help="each cell on a core of its own; no more cells than cores",
    )
    options = parser.parse_args()
    if options.core_each and max(options.cells) > len(os.sched_getaffinity(0)):
        parser.error("there are more cells than cores")
    first: float | None = None
    for cells in options.cells:
        total, by_part = await measure(
            options.messages, cells=cells, rate=options.rate, core_each=options.core_each
        )
        first = first or total
        parts = ", ".join(f"{part} {value:.3f}" for part, value in sorted(by_part.items()))
        _say(
            f"{cells} cells: {total:.3f} ms of processor a message ({total / first:.2f} x the first): {parts}"
        )


if __name__ == "__main__":
    asyncio.run(main())

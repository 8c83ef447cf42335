"""Three cells with servers of their own behind a real nginx; one is killed with its server under load, and comes back.

The carriers of the others notice nothing, and in the end every acknowledged message is there once, and a client of each cell's stream
had every change of its log once.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from statesvc.cells.directory import CellDirectory
from tests.acceptance.cells_world import proxy_before
from tests.acceptance.processes import until_false
from tests.bench.cells import CARRIERS, RunningCell, directory_of, start
from tests.bench.processor import descendants
from tests.bench.traffic import Push, single_scans
from tests.statesvc.api.stream.event_source import event_source

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
KILLED: Final = "cell1"
MESSAGES: Final = 20_000
PHASE: Final = 400
"""Messages of each undisturbed carrier in each phase."""


@dataclass
class Cells:
    """Cells behind `session`, which is the proxy's."""

    running: dict[str, RunningCell]
    directory: CellDirectory
    session: aiohttp.ClientSession

    async def ask(self, path: str, **headers: str) -> tuple[int, Any]:
        async with self.session.get(path, headers=headers) as answer:
            return answer.status, await answer.json()

    def kill(self, name: str) -> None:
        """Kill the roles, their supervisor and the server: as a machine that loses its power."""
        cell = self.running[name]
        (pidfile,) = cell.data.rglob("postmaster.pid")
        postmaster = int(pidfile.read_text().split()[0])
        for pid in {*descendants(cell.process.pid), *descendants(postmaster)}:
            # its children end by themselves once they are alone
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@dataclass
class Sender:
    """Pushes a carrier's messages one after the other, each until it is acknowledged, as a carrier does."""

    session: aiohttp.ClientSession
    pushes: Iterator[Push]
    acknowledged: int = 0
    refused: int = 0
    seconds: list[float] = field(default_factory=list)

    async def run(self) -> None:
        for carrier_id, body in self.pushes:
            while not await self._pushed(carrier_id, body):
                self.refused += 1
                await asyncio.sleep(0.1)
            self.acknowledged += 1
            await asyncio.sleep(0.01)

    async def _pushed(self, carrier_id: str, body: bytes) -> bool:
        started = time.monotonic()
        async with self.session.post(f"/v1/webhooks/{carrier_id}", data=body) as answer:
            assert answer.ok or answer.status == 503, await answer.text()
        self.seconds.append(time.monotonic() - started)
        return answer.ok

    async def until(self, count: int) -> list[float]:
        """Wait until so many more were acknowledged; return how long each call took."""
        wanted, first = self.acknowledged + count, len(self.seconds)
        await until_false(lambda: _is(self.acknowledged < wanted))
        return sorted(self.seconds[first:])


async def _is(answer: bool) -> bool:  # noqa: FBT001 - what `until_false` asks
    return answer


@asynccontextmanager
async def three_cells(folder: Path) -> AsyncIterator[Cells]:
    async with AsyncExitStack() as stack:
        names = [f"cell{number}" for number in range(3)]
        running = dict(
            zip(names, await asyncio.gather(*(start(folder / name) for name in names)), strict=True)
        )
        stack.push_async_callback(_stop, running)
        directory = directory_of(running)
        yield Cells(
            running, directory, await stack.enter_async_context(proxy_before(directory, folder))
        )


async def _stop(running: dict[str, RunningCell]) -> None:
    for cell in running.values():
        if cell.process.returncode is None:
            cell.process.terminate()
    for cell in running.values():
        await cell.process.wait()


@pytest.fixture
async def cells(own_processes: None, tmp_path: Path) -> AsyncIterator[Cells]:  # noqa: ARG001 - a mark
    async with three_cells(tmp_path) as running:
        yield running


class StreamReader:
    """Reads the stream of a cell, and comes back by the last id whenever it ends."""

    def __init__(self, session: aiohttp.ClientSession, cell: str) -> None:
        self._session = session
        self._cell = cell
        self.seen: list[dict[str, Any]] = []
        self._position = "-1"

    async def run(self) -> None:
        while True:
            headers = {"Last-Event-ID": self._position, "Statesvc-Cell": self._cell}
            with suppress(aiohttp.ClientError, AssertionError):
                async with event_source(self._session, headers=headers) as source:
                    async for block in source:
                        self._position = block.id or self._position
                        if block.name is not None:
                            self.seen.append(block.data)
            await asyncio.sleep(0.1)


def in_milliseconds(seconds: list[float]) -> str:
    return f"median {1000 * seconds[len(seconds) // 2]:.1f} ms, p99 {1000 * seconds[len(seconds) * 99 // 100]:.1f} ms"


async def transitions_of(cells: Cells, name: str) -> list[int]:
    """Return the indexes in its log, by its own feed."""
    found: list[int] = []
    after = "-1"
    while True:
        status, page = await cells.ask(
            f"/v1/feed/transitions?limit=1000&after={after}", **{"Statesvc-Cell": name}
        )
        assert status == 200, page
        found += [item["log_index"] for item in page["items"]]
        if page["next_cursor"] is None:
            return found
        after = page["next_cursor"]


async def test_a_killed_cell_disturbs_no_other_and_loses_nothing(cells: Cells) -> None:
    senders = {
        carrier_id: Sender(cells.session, single_scans(MESSAGES, carrier_id))
        for carrier_id in CARRIERS
    }
    lost = next(
        carrier_id for carrier_id in CARRIERS if cells.directory.cell_of(carrier_id) == KILLED
    )
    others = [senders[carrier_id] for carrier_id in CARRIERS if carrier_id != lost]
    readers = {name: StreamReader(cells.session, name) for name in cells.running}
    tasks = [asyncio.create_task(each.run()) for each in senders.values()]
    reading = [asyncio.create_task(reader.run()) for reader in readers.values()]
    try:
        async with asyncio.timeout(900):
            await asyncio.gather(*(each.until(50) for each in others))
            before = await asyncio.gather(*(each.until(PHASE) for each in others))
            cells.kill(KILLED)
            await cells.running[KILLED].process.wait()
            meanwhile = [asyncio.create_task(each.until(PHASE)) for each in others]
            answers = {
                name: (await cells.ask("/v1/queue", **{"Statesvc-Cell": name}))[0]
                for name in cells.running
            }
            assert answers == {name: 503 if name == KILLED else 200 for name in cells.running}
            during = await asyncio.gather(*meanwhile)
            assert [each.refused for each in others] == [0, 0], (
                "the carriers of the others notice nothing"
            )
            assert senders[lost].refused > 0
            cells.running[KILLED] = await start(
                cells.running[KILLED].data, port=cells.running[KILLED].port
            )
            await senders[lost].until(PHASE)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
    async with asyncio.timeout(300):
        for carrier_id, sender in senders.items():
            cell = cells.running[cells.directory.cell_of(carrier_id)]
            for table in ("inbox", "unsealed"):
                await until_false(
                    lambda cell=cell, table=table: cell.value(  # type: ignore[misc]
                        f"SELECT EXISTS (SELECT FROM statesvc.{table})"
                    )
                )
            stored = await cell.value("SELECT count(*) FROM statesvc.event")
            # what was being pushed when it was cancelled may be there too
            assert sender.acknowledged <= stored <= sender.acknowledged + 1, carrier_id
        expected = {name: await transitions_of(cells, name) for name in cells.running}
        await until_false(
            lambda: _is(
                any(len(readers[name].seen) < len(indexes) for name, indexes in expected.items())
            )
        )
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)
    for name, indexes in expected.items():
        assert [one["log_index"] for one in readers[name].seen] == indexes, (
            "every change once, in its log's order"
        )
    for name, sooner, later in zip((c for c in CARRIERS if c != lost), before, during, strict=True):
        print(  # noqa: T201
            f"{name}: undisturbed {in_milliseconds(sooner)}; while {KILLED} is dead {in_milliseconds(later)}"
        )
    print(  # noqa: T201
        f"{sum(each.acknowledged for each in senders.values()):,} acknowledged, {senders[lost].refused} calls answered 503"
    )

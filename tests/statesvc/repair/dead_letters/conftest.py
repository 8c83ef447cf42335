"""A worker with dead letters, and what replaying them takes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import pytest
from psycopg import AsyncConnection

from events.carriers.carrier import Carrier
from statesvc.repair.dead_letters.dead_letter import DeadLetterFilter
from statesvc.repair.dead_letters.replay_plan import RepairRequest, ReplayPlan, plan_replay
from statesvc.repair.dead_letters.replay_run import (
    ReplayBudget,
    ReplayRun,
    RunPosition,
    RunProgress,
)
from statesvc.repair.renormalize.history_walk import Rereader
from tests.statesvc.repair.dead_letters.planted import MENDED, unread
from tests.world.database import SingleConnection
from tests.world.worker_harness import CARRIER_ID, WorkerHarness

ALL = ReplayBudget(dead_letters_max=1_000)


@dataclass
class RepairHarness:
    """An operator: `connection` is not the worker's."""

    harness: WorkerHarness
    connection: AsyncConnection[Any]
    woken: list[frozenset[str]] = field(default_factory=list)
    carriers: dict[str, Carrier] = field(default_factory=lambda: {CARRIER_ID: MENDED})

    def request(self, *ids: int, why: str = "a test", **wanted: Any) -> RepairRequest:
        return RepairRequest(
            wanted=DeadLetterFilter(**wanted),
            ids=ids or None,
            carriers=frozenset({CARRIER_ID}),
            actor="tester",
            why=why,
            run_id=uuid4(),
        )

    @property
    def rereader(self) -> Rereader:
        return Rereader(
            keyring=self.harness.keyring, carriers=self.carriers, writer="replay-1", archive=None
        )

    async def bury(self, *bodies: bytes) -> list[int]:
        """Push what cannot be read and work on it; return the open dead letters in
        the order of their ids.
        """
        await self.harness.push(*bodies)
        await self.harness.work()
        return await self.open_dead_letters()

    async def bury_some(self, count: int) -> list[int]:
        return await self.bury(*(unread(number) for number in range(count)))

    async def open_dead_letters(self) -> list[int]:
        rows = await self.harness.rows(
            "SELECT dead_letter_id FROM statesvc.dead_letter WHERE resolved_at IS NULL ORDER BY 1"
        )
        return [dead_letter_id for (dead_letter_id,) in rows]

    def mend(self) -> None:
        """Run the mended normalizer in the workers from here on."""
        self.harness.context = replace(self.harness.context, carriers={CARRIER_ID: MENDED})

    def run(
        self,
        request: RepairRequest,
        position: RunPosition,
        budget: ReplayBudget,
    ) -> ReplayRun:
        async def wake(channels: frozenset[str]) -> None:
            self.woken.append(channels)

        return ReplayRun(
            connections=SingleConnection(self.connection),
            request=request,
            rereader=self.rereader,
            wake=wake,
            position=position,
            budget=budget,
        )

    async def replay(
        self, request: RepairRequest, budget: ReplayBudget = ALL, *, found: ReplayPlan | None = None
    ) -> RunProgress:
        """Replay by one call."""
        found = found or await plan_replay(self.connection, request)
        return await self.run(request, RunPosition(up_to=found.up_to), budget).replay(found)

    async def call(
        self, request: RepairRequest, budget: ReplayBudget, position: RunPosition | None = None
    ) -> tuple[RunProgress, RunPosition]:
        """Make one call, as the API does it; return where the next one goes on."""
        start = position or RunPosition(up_to=(await plan_replay(self.connection, request)).up_to)
        run = self.run(request, start, budget)
        return await run.replay(), run.position

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Run a worker at the same time."""
        over = asyncio.Event()

        async def work() -> None:
            while not over.is_set():
                await self.harness.work()
                await asyncio.sleep(0.01)

        task = asyncio.create_task(work())
        try:
            yield
        finally:
            over.set()
            await task

    async def actions(self) -> list[dict[str, Any]]:
        found = await self.harness.rows(
            "SELECT canonical FROM statesvc.action ORDER BY recorded_at, batch_id"
        )
        return [json.loads(canonical) for (canonical,) in found]

    async def assert_applied_once(self, numbers: int) -> None:
        """Check that each parcel has one event, and the log holds it once."""
        assert await self.harness.value("SELECT count(*) FROM statesvc.event") == numbers
        assert (
            await self.harness.value(
                "SELECT count(*) FROM statesvc.shipment WHERE status = 'in_transit'"
            )
            == numbers
        )
        assert await self.harness.value("SELECT count(*) FROM statesvc.message") == numbers
        assert await self.harness.value("SELECT count(*) FROM statesvc.inbox") == 0


@pytest.fixture
async def repair(harness: WorkerHarness, database: Any) -> AsyncIterator[RepairHarness]:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        yield RepairHarness(harness, connection)

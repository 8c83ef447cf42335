"""An installation moves to its standby and back by the commands of docs/engines.md while events
come: nothing lost, nothing twice.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from tests.acceptance.processes import Service
from tests.deploy.documented import blocks
from tests.soak.pair import Pair, pair_of_servers


@pytest.fixture
async def pair(own_processes: None) -> AsyncIterator[Pair]:  # noqa: ARG001 - a mark
    async with pair_of_servers() as running:
        yield running


class Sender:
    """Sends events one after the other, each until it is acknowledged, as a carrier does."""

    def __init__(self, service: Service, name: str) -> None:
        self.acknowledged: dict[str, float] = {}
        self._service = service
        self._name = name

    async def run(self) -> None:
        while True:
            number = len(self.acknowledged)
            event = {
                "carrier_id": "ups",
                "kind": "scan",
                "status": "in_transit",
                "occurred_at": "2026-03-01T08:00:00Z",
                "event_id": f"{self._name}-{number}",
                "tracking_number": f"{self._name}{number % 7}",
            }
            async with self._service.session.post(
                f"{self._service.api.url}/v1/events", json=event
            ) as answer:
                if answer.status in {200, 201}:
                    self.acknowledged[event["event_id"]] = time.monotonic()
                else:
                    assert answer.status == 503, await answer.text()
                    await asyncio.sleep(0.02)

    async def send(self, count: int) -> None:
        """Wait until so many more are acknowledged."""
        wanted = len(self.acknowledged) + count
        async with asyncio.timeout(120):
            while len(self.acknowledged) < wanted:  # noqa: ASYNC110 - the service answers
                await asyncio.sleep(0.02)


async def rows(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        return await (await connection.execute(statement.encode())).fetchall()


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_an_installation_moves_there_and_back_under_load(pair: Pair, tmp_path: Path) -> None:
    (move,) = (block.text for block in blocks("docs/engines.md") if "pg_ctl promote" in block.text)
    async with Service(
        service_dsn=pair.dsns.service_dsn,
        owner_dsn=pair.dsns.owner_dsn,
        folder=tmp_path,
        settings={},
        forks=True,
    ) as service:
        await service.start("api", "worker", "sealer")
        senders = [Sender(service, name) for name in ("A", "B", "C")]
        running = [asyncio.create_task(sender.run()) for sender in senders]
        try:
            for _ in range(2):
                await senders[0].send(60)
                await pair.move(move)
                await senders[0].send(60)
                await pair.join()
        finally:
            for task in running:
                task.cancel()
            ended = await asyncio.gather(*running, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
        dsn = pair.dsns.service_dsn
        stored = [
            event_id for (event_id,) in await rows(dsn, "SELECT event_id FROM statesvc.event")
        ]
        assert len(stored) == len(set(stored)), "nothing twice"
        acknowledged = {each: at for sender in senders for each, at in sender.acknowledged.items()}
        assert acknowledged.keys() <= set(stored), "nothing lost"
        async with asyncio.timeout(60):
            # the sealer empties it
            while await rows(dsn, "SELECT FROM statesvc.unsealed LIMIT 1"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await service.command("verify")
    pauses = sorted(later - sooner for sooner, later in pairwise(sorted(acknowledged.values())))
    # the soak's figures
    print(f"{len(stored)} events; longest times without an ACK: {pauses[-2:]}")  # noqa: T201

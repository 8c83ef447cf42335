"""A cell moves to its standby ten times while events come and workers read: nothing lost, nothing twice, the log verifies."""

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from statesvc.cells.cell_move import CellMoveError, move_server
from tests.acceptance.processes import Service
from tests.soak.pair import Pair, pair_of_servers
from tests.soak.server import on_tcp

MOVES: Final = 10
EVENT: Final = {
    "carrier_id": "ups",
    "kind": "scan",
    "status": "in_transit",
    "occurred_at": "2026-03-01T08:00:00Z",
}


@pytest.fixture
async def pair(own_processes: None) -> AsyncIterator[Pair]:  # noqa: ARG001 - a mark
    async with pair_of_servers() as running:
        yield running


class Sender:
    """Sends events one after the other, each until it is acknowledged, as a carrier does."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.acknowledged: list[str] = []
        self.times: list[float] = []

    async def run(self, name: str) -> None:
        number = 0
        while True:
            event = {
                **EVENT,
                "event_id": f"{name}-{number}",
                "tracking_number": f"{name}{number % 7}",
            }
            async with self._service.session.post(
                f"{self._service.api.url}/v1/events", json=event
            ) as answer:
                if answer.status in {200, 201}:
                    self.acknowledged.append(event["event_id"])
                    self.times.append(time.monotonic())
                    number += 1
                else:
                    assert answer.status == 503, await answer.text()
                    await asyncio.sleep(0.02)

    async def until(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        async with asyncio.timeout(120):
            while len(self.acknowledged) < wanted:  # noqa: ASYNC110 - the service answers
                await asyncio.sleep(0.02)


def superusers(pair: Pair) -> tuple[str, str]:
    """Return addresses of the primary and of the standby."""
    known = pair._first  # noqa: SLF001 - the pair has no other use for it
    return on_tcp(known, str(pair.primary.port)).superuser_dsn, on_tcp(
        known, str(pair.standby.port)
    ).superuser_dsn


async def rows(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        return await (await connection.execute(statement.encode())).fetchall()


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_a_loaded_cell_moves_ten_times_with_nothing_lost_and_nothing_twice(
    pair: Pair, tmp_path: Path
) -> None:
    dsns = pair.dsns
    gaps, pauses = [], []
    async with Service(
        service_dsn=dsns.service_dsn,
        owner_dsn=dsns.owner_dsn,
        folder=tmp_path,
        settings={},
        forks=True,
    ) as service:
        await service.start("api", "worker", "sealer")
        sender = Sender(service)
        senders = [asyncio.create_task(sender.run(name)) for name in ("A", "B", "C")]
        try:
            await sender.until(60)
            old, new = superusers(pair)
            with pytest.raises(CellMoveError, match="follows another one itself"):
                await move_server(new, old, fenced_seconds_max=10)
            with pytest.raises(CellMoveError, match="the cell writes on where it was"):
                await move_server(old, new, fenced_seconds_max=0.0001)
            await sender.until(30)
            for _ in range(MOVES):
                old, new = superusers(pair)
                before = len(sender.times) - 1
                moved = await move_server(old, new, fenced_seconds_max=30)
                gaps.append(moved.gap_seconds)
                assert await rows(old, "SHOW default_transaction_read_only") == [("on",)]
                await sender.until(30)
                pauses.append(
                    max(later - sooner for sooner, later in pairwise(sender.times[before:]))
                )
                # the way back: the old server becomes the standby of the new one
                pair.primary, pair.standby = pair.standby, pair.primary
                pair.standby.kill()
                await pair.join()
        finally:
            for task in senders:
                task.cancel()
            ended = await asyncio.gather(*senders, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
        here, _ = superusers(pair)
        stored = [
            event_id
            for (event_id,) in await rows(
                here, "SELECT event_id FROM statesvc.event WHERE carrier_id = 'ups'"
            )
        ]
        assert len(stored) == len(set(stored)), "nothing twice"
        assert set(sender.acknowledged) <= set(stored), "nothing lost"
        async with asyncio.timeout(60):
            while await rows(here, "SELECT FROM statesvc.unsealed LIMIT 1"):  # noqa: ASYNC110 - the sealer empties it
                await asyncio.sleep(0.05)
        printed = await service.command("verify")
    ordered, waited = sorted(gaps), sorted(pauses)
    said = (
        f"{len(gaps)} moves, {len(stored)} events; nothing written for {median(ordered):.3f} s, at most {ordered[-1]:.3f} s; "
        f"nothing acknowledged for {median(waited):.3f} s, at most {waited[-1]:.3f} s"
    )
    print(f"{said}\n{printed}")  # noqa: T201 - the soak's figures

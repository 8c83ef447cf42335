"""A notifier and a real broker, killed with SIGKILL under load; tests/soak/test_brokers.py has both.

Nothing is lost, order per shipment holds, and a consumer that dedupes by id sees each once.
"""

import asyncio
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from tests.statesvc.notifier.conftest import TRIES, World
from tests.world.brokers import running_nats
from tests.world.waiting import until

pytestmark = pytest.mark.usefixtures("own_processes")

SHIPMENTS: Final = 40
CHANGES: Final = 5
DRAINED_SECONDS_MAX: Final = 60
OUTAGE_SECONDS: Final = 120
"""Seconds of the database's clock: longer than the breaker's pause and the first retries."""


async def test_what_is_published_is_recorded_like_any_attempt(world: World, tmp_path: Path) -> None:
    async with running_nats(tmp_path) as server:
        await server.add_stream("S", ["S.>"])
        await world.subscribe(url=f"{server.address}/S.a")
        shipment_id, _ = await world.shipment()
        await world.notify(shipment_id, 1, 2, 3)
        async with world.notifier():
            await until(lambda: _is_empty(world))
        assert await world.attempts() == [("delivered", None, 1)] * 3
        found = await server.stored("S")
    assert [orjson.loads(data)["data"]["sequence"] for _, data in found] == [1, 2, 3]
    assert {headers["ce-subject"] for headers, _ in found} == {str(shipment_id)}


async def test_what_no_stream_takes_waits_blames_the_target_and_is_sent_once_there_is_one(
    world: World, tmp_path: Path
) -> None:
    async with running_nats(tmp_path) as server:
        await world.subscribe(url=f"{server.address}/S.a")
        shipment_id, _ = await world.shipment()
        await world.notify(shipment_id, 1)
        async with world.notifier():
            await until(
                lambda: _has(
                    world, "SELECT FROM statesvc.open_attempt WHERE outcome = 'unroutable'"
                )
            )
            assert await _has(
                world, "SELECT FROM statesvc.subscription_failing WHERE last_outcome = 'unroutable'"
            )
            await server.add_stream("S", ["S.>"])
            await world.advance(10)
            await until(lambda: _is_empty(world))
        assert len(await server.stored("S")) == 1


async def test_nats_killed_twice_under_load(world: World, tmp_path: Path) -> None:
    async with running_nats(tmp_path) as server:
        await server.add_stream("S", ["S.>"])
        await world.subscribe(url=f"{server.address}/S.a?stream=S", coalesce=False)
        shipments = [(await world.shipment())[0] for _ in range(SHIPMENTS)]
        for sequence in range(1, CHANGES + 1):
            for shipment_id in shipments:
                await world.notify(shipment_id, sequence)
        async with world.notifier():
            # each kill comes while changes are sent
            for delivered in (SHIPMENTS * CHANGES // 4, SHIPMENTS * CHANGES // 2):
                failed = await _count(world, "outcome <> 'delivered'")
                await until(
                    lambda count=delivered: _at_least(world, count, "outcome = 'delivered'"),
                    seconds=20,
                )
                await server.kill()
                await world.wake()
                await until(
                    lambda count=failed + 1: _at_least(world, count, "outcome <> 'delivered'"),
                    seconds=20,
                )
                await server.start()
                await world.advance(OUTAGE_SECONDS)
            await _drained(world)
        found = [
            (headers["ce-id"], headers["ce-subject"], int(headers["ce-sequence"]))
            for headers, _ in await server.stored("S")
        ]
    notified = {
        tuple(row)
        for row in await world.rows(
            "SELECT webhook_id, shipment_id::text, sequence FROM statesvc.notification"
        )
    }
    assert len(notified) == SHIPMENTS * CHANGES
    first = list(dict.fromkeys(found))
    assert set(first) == notified, "each at least once, and nothing else"
    order: dict[str, list[int]] = defaultdict(list)
    for _, shipment, sequence in first:
        order[shipment].append(sequence)
    assert all(sequences == sorted(sequences) for sequences in order.values())


async def _drained(world: World) -> None:
    """Drain: what failed waits for its next try, so the clock goes on, but only while nothing is
    under way, whose lease it would end.
    """
    deadline = time.monotonic() + DRAINED_SECONDS_MAX
    before: list[Any] = []
    while outbox := await world.outbox():
        assert time.monotonic() < deadline, (len(outbox), Counter(await world.attempts()))
        if outbox == before and not any(is_leased for *_, is_leased in outbox):
            await world.advance(OUTAGE_SECONDS)
        before = outbox
        await asyncio.sleep(0.3)


async def _is_empty(world: World) -> bool:
    return not await world.outbox()


async def _has(world: World, query: str) -> bool:
    return bool(await world.rows(query))


async def _count(world: World, condition: str) -> int:
    count: Any = (await world.rows(f"SELECT count(*) FROM ({TRIES}) t WHERE {condition}"))[0][0]
    return int(count)


async def _at_least(world: World, count: int, condition: str) -> bool:
    return await _count(world, condition) >= count

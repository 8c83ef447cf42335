"""What was delivered, and nothing waits for, is settled with the next claim; everything else at once,
and at a stop what is under way ends or goes back.
"""

import asyncio
import contextlib
from typing import Any

import pytest
from aiohttp import web

from statesvc.notifier import notifier_loop
from statesvc.notifier.turn import TurnResult, take_turn
from tests.world.waiting import until

pytestmark = pytest.mark.slow
NOT_BY_ITSELF = 3600.0


async def test_a_delivered_notification_is_settled_with_the_next_claim(
    world: Any, receiver: Any
) -> None:
    await world.subscribe()
    async with world.notifier(settle_within_seconds=NOT_BY_ITSELF):
        # a claim as it starts, or for the next due time, may come right after a delivery
        waited = []
        for delivered in range(1, 6):
            shipment_id, _ = await world.shipment()
            await world.notify(shipment_id, 1)
            await world.wake()
            await until(lambda delivered=delivered: len(receiver.received) == delivered)
            # long enough for a turn of its own
            await asyncio.sleep(0.2)
            waited.append(await world.outbox() == [(shipment_id, 1, 1, True)])
        assert sum(waited) >= 2, "the delivered one alone: those before it are settled"


async def test_it_is_settled_by_itself_when_no_claim_comes(
    world: Any, receiver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipment_id = await world.notified_shipment()
    turns: list[TurnResult] = []

    async def watched(*args: Any) -> TurnResult:
        turns.append(await take_turn(*args))
        return turns[-1]

    monkeypatch.setattr(notifier_loop, "take_turn", watched)
    # no claim for the next due time either
    monkeypatch.setattr(notifier_loop, "_NEXT_DUE_SECONDS", NOT_BY_ITSELF)
    async with world.notifier(settle_within_seconds=0.3) as notifier:
        await until(lambda: turns)
        await world.notify(shipment_id, 1)
        await world.wake()
        await until(lambda: receiver.received and notifier.in_flight == 0)
        assert await world.outbox() == []
        await asyncio.sleep(0.2)
        assert turns[-1].claimed is None, "nothing waited behind it"
        receiver.statuses(500, 204, **{"Retry-After": "1"})
        await world.notify(shipment_id, 2)
        await world.wake()
        # its retry is found without a wake-up
        await until(lambda: len(receiver.received) == 3, 10)


async def test_what_waits_behind_it_is_not_held_back(world: Any, receiver: Any) -> None:
    await world.notified_shipment(1, 2, 3)
    async with world.notifier(settle_within_seconds=NOT_BY_ITSELF):
        await until(lambda: len(receiver.received) == 3)
    assert [got.data["sequence"] for got in receiver.received] == [1, 2, 3]


async def test_what_came_behind_it_while_it_was_sent_is_not_held_back(
    world: Any, receiver: Any
) -> None:
    await world.subscribe()
    (shipment_id, _), (other, _) = await world.shipment(), await world.shipment()
    held = receiver.hold()
    async with world.notifier(settle_within_seconds=NOT_BY_ITSELF):
        await world.notify(shipment_id, 1)
        await world.wake()
        await until(lambda: receiver.received)
        await world.notify(shipment_id, 2)
        await world.notify(other, 1)
        await world.wake()
        # the claim that found the other one passed over the second of the first shipment
        await until(lambda: len(receiver.received) == 2)
        held.set()
        await until(lambda: len(receiver.received) == 3)


async def test_a_failure_is_settled_at_once(world: Any, receiver: Any) -> None:
    shipment_id = await world.notified_shipment(1)
    receiver.statuses(500)
    async with world.notifier(settle_within_seconds=NOT_BY_ITSELF) as notifier:
        await until(lambda: receiver.received and notifier.in_flight == 0)
        assert await world.outbox() == [(shipment_id, 1, 1, False)]


async def test_a_notifier_that_stops_settles_what_it_held(world: Any, receiver: Any) -> None:
    await world.notified_shipment(1)
    async with world.notifier(settle_within_seconds=NOT_BY_ITSELF):
        await until(lambda: receiver.received)
    assert await world.outbox() == []
    assert await world.attempts() == [("delivered", 204, 1)]


async def test_a_notifier_that_lost_its_lease_settles_nothing(world: Any, receiver: Any) -> None:
    shipment_id = await world.notified_shipment(1)
    is_taken_over = receiver.hold()
    async with world.notifier():
        await until(lambda: receiver.received)
        # as the claim of another notifier does when the lease has ended
        await world.rows("UPDATE statesvc.outbox SET token = gen_random_uuid() RETURNING 1")
        is_taken_over.set()
    assert await world.outbox() == [(shipment_id, 1, 1, True)]
    assert await world.attempts() == [("delivered", 204, 1)]
    assert await world.ends() == []


async def test_a_stop_lets_what_is_in_flight_finish(world: Any, receiver: Any) -> None:
    shipment_id = await world.notified_shipment(1, 2)

    async def take_a_moment(_got: Any) -> web.StreamResponse:
        await asyncio.sleep(0.2)
        return web.Response()

    receiver.answer = take_a_moment
    async with world.notifier() as notifier:
        await until(lambda: receiver.received)
        notifier.stop()
        notifier.stop()
    assert len(receiver.received) == 1
    assert await world.attempts() == [("delivered", 200, 1)]
    assert await world.outbox() == [(shipment_id, 2, 0, False)]


async def test_what_a_stopping_notifier_gives_back_another_takes_at_once(
    world: Any, receiver: Any
) -> None:
    await world.notified_shipment(1)
    never = receiver.hold()
    async with contextlib.AsyncExitStack() as second:
        async with world.notifier(grace_seconds=0.1):
            await until(lambda: receiver.received)
            receiver.answer = None
            await second.enter_async_context(world.notifier())
        await until(lambda: len(receiver.received) == 2, 5)
    never.set()
    assert await world.attempts() == [("delivered", 204, 1)], "uncharged"


async def test_a_notifier_that_is_stopped_before_it_runs_ends_at_once(
    world: Any, receiver: Any
) -> None:
    await world.subscribe()
    async with world.notifier() as notifier:
        notifier.stop()
    assert receiver.received == []

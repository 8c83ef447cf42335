"""Stopping of a notifier: what is under way ends or goes back, and another takes it over."""

import asyncio
import contextlib
from typing import Any

import pytest
from aiohttp import web

pytestmark = pytest.mark.slow


async def test_a_stop_lets_what_is_in_flight_finish(world: Any, receiver: Any, until: Any) -> None:
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


async def test_a_stop_gives_back_uncharged_what_takes_longer_than_the_grace(
    world: Any, receiver: Any, until: Any
) -> None:
    shipment_id = await world.notified_shipment(1)
    never = receiver.hold()
    async with world.notifier(grace_seconds=0.1):
        await until(lambda: receiver.received)
    never.set()
    assert await world.outbox() == [(shipment_id, 1, 0, False)]


async def test_what_a_stopping_notifier_gives_back_another_takes_at_once(
    world: Any, receiver: Any, until: Any
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


@pytest.mark.parametrize("stop_first", [True, False])
async def test_a_notifier_that_is_stopped_before_it_runs_ends_at_once(
    world: Any,
    receiver: Any,
    stop_first: bool,  # noqa: FBT001
) -> None:
    await world.subscribe()
    async with world.notifier() as notifier:
        if stop_first:
            notifier.stop()
    assert receiver.received == []

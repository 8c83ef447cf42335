"""Limits of a notifier, against a real database and a real subscriber on loopback."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from statesvc.delivery.limiter.circuit_breaker import ATTEMPTS_MIN, OPEN_SECONDS
from statesvc.subscriptions import subscription_store as store
from tests.world.waiting import until

pytestmark = pytest.mark.slow

SETTLED_SECONDS = 0.15


async def shipments(world: Any, count: int) -> list[Any]:
    made = [(await world.shipment())[0] for _ in range(count)]
    for shipment_id in made:
        await world.notify(shipment_id, 1)
    await world.wake()
    return made


async def test_a_receiver_that_asks_to_wait_is_left_alone_by_every_notifier_until_then(
    world: Any, receiver: Any
) -> None:
    await world.subscribe()
    receiver.statuses(429, 200, **{"Retry-After": "100"})
    await shipments(world, 1)
    async with world.notifier() as first:
        await until(lambda: receiver.received and first.in_flight == 0)
        async with world.notifier():
            await shipments(world, 5)
            await world.advance(90)
            await asyncio.sleep(SETTLED_SECONDS)
            assert len(receiver.received) == 1
            await world.advance(11)
            await until(lambda: len(receiver.received) >= 6)


async def test_the_end_of_a_pause_needs_no_wake_up(world: Any, receiver: Any) -> None:
    await world.subscribe()
    receiver.statuses(503, 200, **{"Retry-After": "1"})
    await shipments(world, 1)
    async with world.notifier():
        await until(lambda: receiver.received)
        await shipments(world, 3)
        await until(lambda: len(receiver.received) == 5)


async def test_a_resume_ends_a_pause_that_the_receiver_asked_for(world: Any, receiver: Any) -> None:
    subscription_id = await world.subscribe()
    receiver.statuses(429, 200, **{"Retry-After": "10000"})
    await shipments(world, 1)
    async with world.notifier() as notifier:
        await until(lambda: receiver.received and notifier.in_flight == 0)
        await shipments(world, 1)
        await asyncio.sleep(SETTLED_SECONDS)
        assert len(receiver.received) == 1
        await store.change_state(world.connection, subscription_id, "resume", actor="key:test")
        await world.wake()
        await until(lambda: len(receiver.received) == 2)


async def test_a_contracted_rate_holds_for_all_notifiers_together(
    world: Any, receiver: Any
) -> None:
    await world.subscribe(rate_per_second=0.01)
    await shipments(world, 10)
    async with world.notifier(), world.notifier():
        for count in (1, 2, 3):
            await until(lambda count=count: len(receiver.received) == count)
            await world.wake()
            await asyncio.sleep(SETTLED_SECONDS)
            assert len(receiver.received) == count, "too early"
            await world.advance(101)
        await until(lambda: len(receiver.received) == 4)
        await world.advance(100_000)
        await until(lambda: len(receiver.received) == 5)
        await asyncio.sleep(SETTLED_SECONDS)
        assert len(receiver.received) == 5, "a long silence saves up one second's worth, not more"


async def test_a_rate_lets_a_second_s_worth_go_at_once_and_then_keeps_to_it(
    world: Any, receiver: Any
) -> None:
    await world.subscribe(rate_per_second=5)
    begun = asyncio.get_running_loop().time()
    await shipments(world, 12)
    async with world.notifier():
        await until(lambda: len(receiver.received) == 12, 20)
    assert asyncio.get_running_loop().time() - begun >= 7 / 5


async def test_a_receiver_that_is_down_is_asked_by_one_probe_and_its_news_keep_their_tries(
    world: Any, receiver: Any
) -> None:
    await world.subscribe()
    down = True

    async def answer(_got: Any) -> web.StreamResponse:
        return web.Response(status=503 if down else 200)

    receiver.answer = answer
    async with world.notifier() as notifier:
        await shipments(world, 60)
        await until(lambda: len(receiver.received) >= ATTEMPTS_MIN and notifier.in_flight == 0)
        asked = len(receiver.received)
        assert asked < 2 * ATTEMPTS_MIN
        await world.wake()
        await asyncio.sleep(SETTLED_SECONDS)
        assert len(receiver.received) == asked
        await world.advance(OPEN_SECONDS + 0.5)
        await until(lambda: len(receiver.received) == asked + 1 and notifier.in_flight == 0)
        await world.wake()
        await asyncio.sleep(SETTLED_SECONDS)
        assert len(receiver.received) == asked + 1, "one probe, then longer silence"
        down = False
        await world.advance(100)
        await until(
            lambda: (
                len({got.webhook_id for got in receiver.received}) == 60 and notifier.in_flight == 0
            )
        )
    ((untried,),) = await world.rows(
        "SELECT count(*) FROM statesvc.attempt WHERE number = 1 AND outcome = 'delivered'"
    )
    assert untried >= 60 - asked - 1


async def test_news_goes_out_while_many_retries_are_due(world: Any, receiver: Any) -> None:
    await world.subscribe()
    old = await shipments(world, 100)
    await world.connection.execute(
        "UPDATE statesvc.outbox SET attempts = 1, available_at = statesvc.clock() - interval '1"
        " hour'"
    )
    new = await shipments(world, 20)
    order: list[Any] = []
    shipment_of = {
        row[0]: row[1]
        for row in await world.rows("SELECT webhook_id, shipment_id FROM statesvc.notification")
    }

    async def answer(got: Any) -> web.StreamResponse:
        order.append(shipment_of[got.webhook_id])
        await asyncio.sleep(0.01)
        return web.Response()

    receiver.answer = answer
    async with world.notifier():
        await until(lambda: len(order) == 120, 20)
    last_new = max(order.index(shipment_id) for shipment_id in new)
    assert last_new < 60, "three in five are for news"
    assert set(order[:last_new]) & set(old), "and retries had their turn"


async def test_an_earlier_one_that_is_put_back_waits_for_what_is_under_way(
    world: Any, receiver: Any
) -> None:
    subscription_id = await world.subscribe()
    shipment_id, _ = await world.shipment()
    await world.notify(shipment_id, 1, 2)
    await world.connection.execute("DELETE FROM statesvc.outbox WHERE sequence = 1")
    answered = receiver.hold()
    async with world.notifier():
        await until(lambda: receiver.received)
        await world.connection.execute(
            "INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at,"
            " created_at) VALUES (%s, %s, 1, statesvc.clock(), statesvc.clock())",
            (subscription_id, shipment_id),
        )
        await world.wake()
        await asyncio.sleep(SETTLED_SECONDS)
        assert [got.data["sequence"] for got in receiver.received] == [2]
        answered.set()
        await until(lambda: len(receiver.received) == 2)


async def test_nobody_is_notified_while_the_sealer_refuses_the_log(
    world: Any, receiver: Any
) -> None:
    await world.subscribe()
    await world.connection.execute(
        "INSERT INTO statesvc.sealing_refusal (why, since) VALUES ('a backup was restored', now())"
    )
    async with world.notifier():
        await shipments(world, 2)
        await asyncio.sleep(SETTLED_SECONDS)
        assert receiver.received == []
        await world.connection.execute("DELETE FROM statesvc.sealing_refusal")
        await world.wake()
        await until(lambda: len(receiver.received) == 2)

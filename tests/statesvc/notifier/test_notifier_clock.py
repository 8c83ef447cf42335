"""Notifications that were put or scheduled while the database's clock was ahead are sent, not held
until the time that it showed.
"""

from typing import Any

from statesvc.notifier.housekeeping import repair_outbox
from tests.world.waiting import until

HOUR = 3600.0


async def due(world: Any) -> list[bool]:
    rows = await world.rows(
        "SELECT available_at <= statesvc.clock() FROM statesvc.outbox ORDER BY shipment_id,"
        " sequence"
    )
    return [found for (found,) in rows]


async def test_a_change_of_the_hour_ahead_is_sent_within_a_sweep(world: Any, receiver: Any) -> None:
    shipment_id = await world.notified_shipment()
    await world.advance(HOUR)
    await world.notify(shipment_id, 1, 2)
    await world.advance(-HOUR)
    assert await due(world) == [False, False]
    async with world.notifier(sweep_seconds=0.2):
        await until(lambda: len(receiver.received) == 2)
    assert [got.data["sequence"] for got in receiver.received] == [1, 2]


async def test_a_retry_that_was_scheduled_ahead_is_due_and_one_that_a_receiver_asked_for_is_not(
    world: Any, receiver: Any
) -> None:
    shipment_id = await world.notified_shipment()
    receiver.statuses(500)
    await world.advance(HOUR)
    await world.notify(shipment_id, 1, 2)
    async with world.notifier():
        await world.wake()
        await until(lambda: receiver.received)
    await world.advance(-HOUR)
    assert await repair_outbox(world.connection) == 1
    assert await due(world) == [True, False], "the follower waits for its head"

    await world.advance(HOUR + 60)
    await world.rows(
        "UPDATE statesvc.outbox SET available_at = statesvc.clock() + interval '3 hours' WHERE"
        " sequence = 1 RETURNING 1"
    )
    assert await repair_outbox(world.connection) == 0, (
        "an attempt of the past explains it: its receiver may have asked"
    )


async def test_a_retry_and_its_follower_that_wait_by_the_schedule_are_left_alone(
    world: Any, receiver: Any
) -> None:
    shipment_id = await world.notified_shipment()
    receiver.statuses(500)
    await world.notify(shipment_id, 1, 2)
    async with world.notifier():
        await until(lambda: receiver.received)
    assert await repair_outbox(world.connection) == 0


async def test_a_contracted_rate_that_was_spent_ahead_is_not_waited_for(world: Any) -> None:
    await world.subscribe(rate_per_second=1)
    await world.rows(
        "UPDATE statesvc.throttle SET spent_until = statesvc.clock() + interval '1 hour'"
        " RETURNING 1"
    )
    assert await repair_outbox(world.connection) == 1
    assert await world.rows("SELECT spent_until <= statesvc.clock() FROM statesvc.throttle") == [
        (True,)
    ]


async def test_a_receiver_that_asked_for_a_while_ahead_is_called_again(
    world: Any, receiver: Any
) -> None:
    shipment_id = await world.notified_shipment()
    receiver.statuses(429, 200, **{"Retry-After": "60"})
    await world.advance(HOUR)
    await world.notify(shipment_id, 1)
    async with world.notifier():
        await world.wake()
        await until(lambda: receiver.received)
    assert await world.rows("SELECT FROM statesvc.throttle WHERE not_before > statesvc.clock()"), (
        "what is under way ends with the notifier"
    )
    await world.advance(-HOUR)
    assert await repair_outbox(world.connection) >= 2
    assert await world.rows("SELECT not_before <= statesvc.clock() FROM statesvc.throttle") == [
        (True,)
    ]
    await world.advance(HOUR + 60)
    await world.rows(
        "UPDATE statesvc.throttle SET not_before = statesvc.clock() + interval '3 hours'"
        " RETURNING 1"
    )
    assert await repair_outbox(world.connection) == 0, "an attempt of the past explains it"


async def test_what_operators_see_and_are_sent_is_of_now(world: Any) -> None:
    await world.subscribe()
    ahead = "statesvc.clock() + interval '1 hour'"
    await world.rows(
        "INSERT INTO statesvc.limiter_state SELECT subscription_id, 'w', "
        + ahead
        + ", 1, 0, NULL, 'open', "
        + ahead
        + " + interval '30 seconds'"
        " FROM statesvc.subscription RETURNING 1"
    )
    assert await repair_outbox(world.connection) == 1
    ((updated, open_for),) = await world.rows(
        "SELECT updated_at <= statesvc.clock(), extract(epoch FROM open_until - updated_at)::int"
        " FROM statesvc.limiter_state"
    )
    assert (updated, open_for) == (True, 30)

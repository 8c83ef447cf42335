"""A notification that gave up, replayed: the same webhook id, attempts numbered on, the
schedule from its beginning.
"""

from typing import Any
from uuid import uuid4

from statesvc.delivery.retry_schedule import ATTEMPTS_MAX
from statesvc.repair.dead_letters.dead_letter import DeadLetterFilter, Obstacle
from statesvc.repair.dead_letters.put_back import ReplayVerdict, obstacle_of, put_back, verdicts
from statesvc.repair.dead_letters.replay_plan import RepairRequest
from tests.world.waiting import until


def order(*ids: int) -> RepairRequest:
    return RepairRequest(
        wanted=DeadLetterFilter(),
        ids=ids,
        carriers=frozenset(),
        actor="tester",
        why="their server is back",
        run_id=uuid4(),
    )


async def exhaust(world: Any, *, told_before: int = 0) -> int:
    """Try one notification once, and with that for the last time; return its dead letter.

    `told_before`: attempts of earlier replays.
    """
    shipment_id, _ = await world.shipment()
    await world.notify(shipment_id, 1)
    await world.connection.execute(
        "UPDATE statesvc.outbox SET attempts = %s, earlier_attempts = %s",
        (ATTEMPTS_MAX - 1, told_before),
    )
    world.receiver.statuses(503)
    query = "SELECT dead_letter_id FROM statesvc.dead_letter WHERE resolved_at IS NULL"
    async with world.notifier():
        await world.wake()
        await until(lambda: _any(world, query))
    ((dead_letter_id,),) = await world.rows(query)
    return int(dead_letter_id)


async def _any(world: Any, query: str) -> bool:
    return bool(await world.rows(query))


async def test_it_is_sent_again_under_its_webhook_id_and_its_attempts_are_numbered_on(
    world: Any,
) -> None:
    await world.subscribe()
    dead_letter_id = await exhaust(world)
    assert await put_back(world.connection, order(dead_letter_id), [dead_letter_id]) == {
        dead_letter_id: None
    }
    assert await put_back(world.connection, order(dead_letter_id), [dead_letter_id]) == {
        dead_letter_id: Obstacle.REPLAYED
    }
    assert await verdicts(world.connection, [dead_letter_id]) == {
        dead_letter_id: ReplayVerdict.WAITING
    }
    assert await world.rows("SELECT replayed FROM statesvc.fanout ORDER BY batch_id") == [
        (False,),
        (True,),
    ]
    world.receiver.statuses(503, 204)
    async with world.notifier():
        await until(lambda: len(world.receiver.received) == 2)
        await until(
            lambda: _any(world, "SELECT FROM statesvc.outbox WHERE attempts = 1 AND token IS NULL")
        )
        assert await verdicts(world.connection, [dead_letter_id]) == {
            dead_letter_id: ReplayVerdict.FAILING
        }
        await world.advance(10)
        await until(lambda: len(world.receiver.received) == 3)
        await until(lambda: _any(world, "SELECT WHERE NOT EXISTS (SELECT FROM statesvc.outbox)"))
    assert len({got.webhook_id for got in world.receiver.received}) == 1
    assert [number for _, _, number in await world.attempts()] == [
        ATTEMPTS_MAX,
        ATTEMPTS_MAX + 1,
        ATTEMPTS_MAX + 2,
    ]
    assert await world.ends() == [("given_up", ATTEMPTS_MAX), ("delivered", ATTEMPTS_MAX + 2)], (
        "one end for each time that it was sent"
    )
    assert await verdicts(world.connection, [dead_letter_id]) == {
        dead_letter_id: ReplayVerdict.SETTLED
    }
    assert await world.rows(
        "SELECT count(*) FROM statesvc.dead_letter WHERE resolved_at IS NULL"
    ) == [(0,)]


async def test_it_can_give_up_again_and_is_a_new_dead_letter(world: Any) -> None:
    await world.subscribe()
    first = await exhaust(world)
    await put_back(world.connection, order(first), [first])
    await world.connection.execute("UPDATE statesvc.outbox SET attempts = %s", (ATTEMPTS_MAX,))
    async with world.notifier():
        await world.wake()
        await until(
            lambda: _any(world, "SELECT FROM statesvc.dead_letter WHERE resolved_at IS NULL")
        )
    ((second,),) = await world.rows(
        "SELECT dead_letter_id FROM statesvc.dead_letter WHERE resolved_at IS NULL"
    )
    assert await verdicts(world.connection, [first]) == {first: ReplayVerdict.BURIED}
    assert await put_back(world.connection, order(second), [second]) == {second: None}
    # the last life was charged claims of which none was sent
    assert await world.rows("SELECT earlier_attempts, attempts FROM statesvc.outbox") == [
        (ATTEMPTS_MAX, 0)
    ]


async def test_attempts_are_numbered_on_from_the_log_though_not_all_of_them_ended_in_dead_letters(
    world: Any,
) -> None:
    await world.subscribe()
    dead_letter_id = await exhaust(world, told_before=7)
    assert [number for _, _, number in await world.attempts()] == [7 + ATTEMPTS_MAX]
    await put_back(world.connection, order(dead_letter_id), [dead_letter_id])
    assert await world.rows("SELECT earlier_attempts, attempts FROM statesvc.outbox") == [
        (7 + ATTEMPTS_MAX, 0)
    ]


async def test_a_subscription_that_is_gone_is_not_notified_again(world: Any) -> None:
    subscription_id = await world.subscribe()
    dead_letter_id = await exhaust(world)
    for change, obstacle in (
        ("disabled_at", Obstacle.SUBSCRIPTION_DISABLED),
        ("deleted_at", Obstacle.SUBSCRIPTION_GONE),
    ):
        await world.connection.execute(
            f"UPDATE statesvc.subscription SET {change} = statesvc.clock() WHERE subscription_id"
            " = %s",
            (subscription_id,),
        )
        assert await put_back(world.connection, order(dead_letter_id), [dead_letter_id]) == {
            dead_letter_id: obstacle
        }
    assert await world.outbox() == []


async def test_a_dead_letter_from_before_dead_letters_named_their_notification(world: Any) -> None:
    await world.connection.execute(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, webhook_id) VALUES"
        " ('notification', 'delivery_exhausted', 'ups', statesvc.clock(),"
        " 'n1-of-nothing-that-is-there')"
    )
    assert await obstacle_of(world.connection, 1) is Obstacle.NOTIFICATION_GONE

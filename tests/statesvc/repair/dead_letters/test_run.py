"""A replay of many, in calls: each dead letter once, and the record of it."""

import asyncio
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from statesvc.database.wakeups.wakeup import READY_NOW
from statesvc.repair.dead_letters.dead_letter import Obstacle
from statesvc.repair.dead_letters.put_back import discard
from statesvc.repair.dead_letters.replay_plan import plan_replay
from statesvc.repair.dead_letters.replay_run import ReplayBudget, ReplayEnd, RunPosition
from tests.statesvc.repair.dead_letters.conftest import ALL, Desk
from tests.statesvc.repair.dead_letters.planted import unread
from tests.world.shop import CARRIER_ID

pytestmark = pytest.mark.slow

CAUSE = {"carrier_id": CARRIER_ID, "cause": "normalizer_failed"}


async def test_all_that_match_are_replayed_and_the_record_says_so(desk: Desk) -> None:
    await desk.bury_some(300)
    desk.mend()
    order = desk.order(why="normalizer mended", **CAUSE)
    async with desk.working():
        progress = await desk.replay(order)
    assert (progress.replayed, progress.ended) == (300, ReplayEnd.DONE)
    await desk.shop.work()
    assert await desk.open_dead_letters() == []
    await desk.assert_applied_once(300)
    assert set(desk.woken) == {frozenset(READY_NOW)}
    begun, ended = await desk.actions()
    assert (begun["verb"], begun["actor"], begun["target"]) == (
        "replay_begun",
        "tester",
        "dead letters",
    )
    assert begun["details"] == {
        "run": str(order.run_id),
        "why": "normalizer mended",
        "carrier": CARRIER_ID,
        "cause": "normalizer_failed",
        "dead_letters": 300,
        "replayable": 300,
    }
    assert (ended["verb"], ended["details"]["run"], ended["details"]["ended"]) == (
        "replay_ended",
        str(order.run_id),
        "done",
    )
    assert ended["details"]["replayed"] == 300
    assert await desk.shop.rows("SELECT DISTINCT run_id FROM statesvc.dead_letter") == [
        (order.run_id,)
    ]


async def test_what_cannot_be_replayed_is_counted_and_the_rest_goes_on(desk: Desk) -> None:
    dead_letters = await desk.bury_some(25)
    desk.mend()
    await desk.shop.as_owner(
        "UPDATE statesvc.dead_letter SET sealed_key = NULL WHERE dead_letter_id IN"
        f" ({dead_letters[0]}, {dead_letters[15]})"
    )
    async with desk.working():
        progress = await desk.replay(desk.order(**CAUSE))
    assert (progress.replayed, progress.refused, progress.ended) == (
        23,
        {Obstacle.ERASED: 2},
        ReplayEnd.DONE,
    )
    assert await desk.open_dead_letters() == [dead_letters[0], dead_letters[15]]


async def test_only_what_was_buried_in_that_time_is_meant(desk: Desk) -> None:
    (early,) = await desk.bury_some(1)
    await desk.shop.database.clock.advance(3600)
    now = await desk.shop.database.clock.now()
    await desk.bury(unread(7))
    assert (await plan_replay(desk.connection, desk.order(**CAUSE, since=now))).dead_letters == 1
    assert (await plan_replay(desk.connection, desk.order(**CAUSE, until=now))).dead_letters == 1
    desk.mend()
    async with desk.working():
        await desk.replay(desk.order(**CAUSE, since=now))
    assert await desk.open_dead_letters() == [early]


async def test_what_was_discarded_stands_in_the_record_and_is_never_replayed(desk: Desk) -> None:
    dead_letters = await desk.bury_some(5)
    order = desk.order(why="they were test messages", **CAUSE)
    assert await discard(desk.connection, order, up_to=dead_letters[2]) == 3
    assert await discard(desk.connection, order, up_to=dead_letters[2]) == 0
    (action,) = await desk.actions()
    assert (action["verb"], action["details"]["discarded"], action["details"]["why"]) == (
        "discard",
        3,
        "they were test messages",
    )
    assert UUID(action["details"]["run"]) == order.run_id
    desk.mend()
    async with desk.working():
        progress = await desk.replay(desk.order(**CAUSE))
    assert progress.replayed == 2
    found = await desk.shop.rows(
        "SELECT resolution, count(*) FROM statesvc.dead_letter GROUP BY 1 ORDER BY 1"
    )
    assert found == [("discarded", 3), ("replayed", 2)]


async def test_the_oldest_go_first_and_what_is_buried_again_is_no_part_of_the_run(
    desk: Desk,
) -> None:
    dead_letters = await desk.bury_some(12)
    order, few = desk.order(**CAUSE), ReplayBudget(dead_letters_max=4)
    progress, position = await desk.call(order, few)
    assert (progress.replayed, progress.ended, progress.remaining) == (
        4,
        ReplayEnd.LIMIT_REACHED,
        8,
    )
    assert await desk.open_dead_letters() == dead_letters[4:]
    await desk.shop.work()
    assert len(await desk.open_dead_letters()) == 12, "the four are dead letters again"
    rest, _ = await desk.call(order, ALL, position)
    assert (rest.replayed, rest.ended, rest.remaining) == (8, ReplayEnd.DONE, 0)
    assert await desk.shop.value("SELECT count(DISTINCT run_id) FROM statesvc.dead_letter") == 1


async def test_a_call_whose_time_is_over_says_what_remains(desk: Desk) -> None:
    await desk.bury_some(3)
    late = ReplayBudget(dead_letters_max=30, seconds=0)
    progress, _ = await desk.call(desk.order(**CAUSE), late)
    assert (progress.ended, progress.replayed, progress.remaining) == (
        ReplayEnd.LIMIT_REACHED,
        0,
        3,
    )


async def test_two_runs_at_the_same_time_share_the_work(desk: Desk) -> None:
    await desk.bury_some(200)
    desk.mend()
    found = await plan_replay(desk.connection, desk.order(**CAUSE))
    async with await AsyncConnection.connect(
        desk.shop.database.service_dsn, autocommit=True
    ) as connection:
        other = Desk(desk.shop, connection)
        runs = await asyncio.gather(
            *(each.replay(each.order(**CAUSE), found=found) for each in (desk, other))
        )
    assert sum(progress.replayed for progress in runs) == 200
    await desk.shop.work()
    await desk.assert_applied_once(200)


async def test_an_interrupted_call_is_recorded_and_the_next_one_goes_on(desk: Desk) -> None:
    await desk.bury_some(5)
    desk.mend()
    order, few = desk.order(**CAUSE), ReplayBudget(dead_letters_max=3)
    run = desk.run(order, RunPosition(up_to=(await desk.open_dead_letters())[-1]), few)

    async def cancelled(_channels: frozenset[str]) -> None:
        raise asyncio.CancelledError

    run.wake = cancelled
    with pytest.raises(asyncio.CancelledError):
        await run.replay()
    ended = (await desk.actions())[-1]["details"]
    assert (ended["ended"], ended["replayed"]) == ("interrupted", 3)
    assert (await desk.replay(desk.order(**CAUSE))).replayed == 2
    await desk.shop.work()
    await desk.assert_applied_once(5)

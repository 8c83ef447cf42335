"""A replay of many: canary, stop, bounds, interruption; each letter once, and the record of it."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from statesvc.database.wakeups.channels import INBOX
from statesvc.repair.dead_letters.discard import discard
from statesvc.repair.dead_letters.obstacle import Obstacle
from statesvc.repair.dead_letters.put_back import horizon, plan
from statesvc.repair.dead_letters.replay_pace import Bounds, Ended
from tests.statesvc.repair.dead_letters.conftest import Desk
from tests.statesvc.repair.dead_letters.planted import unread
from tests.world.shop import CARRIER_ID

FAST = Bounds(canary=10, per_second=None)
CAUSE = {"carrier_id": CARRIER_ID, "cause": "normalizer_failed"}


async def test_all_that_match_are_replayed_and_the_record_says_so(desk: Desk) -> None:
    await desk.bury_some(300)
    desk.mend()
    order = desk.order(why="normalizer mended", **CAUSE)
    async with desk.working():
        tally = await desk.replay(order, FAST)
    assert (tally.replayed, tally.settled, tally.failed, tally.waiting, tally.ended) == (300, 300, 0, 0, Ended.DONE)
    assert await desk.open_letters() == []
    await desk.assert_applied_once(300)
    assert set(desk.woken) == {frozenset({INBOX})}
    begun, ended = await desk.actions()
    assert (begun["verb"], begun["actor"], begun["target"]) == ("replay_begun", "tester", "dead letters")
    assert begun["details"] == {
        "run": str(order.run_id),
        "why": "normalizer mended",
        "carrier": CARRIER_ID,
        "cause": "normalizer_failed",
        "letters": 300,
        "replayable": 300,
        "canary": 10,
        "stop_at_percent": "5.0",
    }
    assert (ended["verb"], ended["details"]["run"], ended["details"]["ended"]) == ("replay_ended", str(order.run_id), "done")
    assert (ended["details"]["replayed"], ended["details"]["settled"]) == (300, 300)
    assert await desk.shop.rows("SELECT DISTINCT run_id FROM statesvc.dead_letter") == [(order.run_id,)]
    assert [tally.replayed for tally in desk.seen] == sorted(tally.replayed for tally in desk.seen)


async def test_a_canary_that_fails_again_leaves_the_rest_alone(desk: Desk) -> None:
    letters = await desk.bury_some(40)
    async with desk.working():
        tally = await desk.replay(desk.order(**CAUSE), FAST)
    assert (tally.ended, tally.replayed) == (Ended.CANARY_FAILED, 10)
    await desk.shop.work()
    left = await desk.open_letters()
    assert set(letters[10:]) < set(left)
    assert len(left) == 40, "the ten are letters again"
    assert (await desk.actions())[-1]["details"]["ended"] == "canary_failed"


async def test_a_run_stops_when_errors_rise(desk: Desk) -> None:
    await desk.bury_some(40)
    await desk.bury(*(unread(number, hopeless=True) for number in range(40, 300)))
    desk.mend()
    async with desk.working():
        tally = await desk.replay(desk.order(**CAUSE), Bounds(canary=10, per_second=200))
    assert tally.ended is Ended.ERRORS_ROSE
    assert tally.replayed < 200
    assert len(await desk.open_letters()) > 200
    await desk.shop.work()
    await desk.assert_applied_once(40)


async def test_what_is_buried_again_during_a_run_is_no_part_of_it(desk: Desk) -> None:
    await desk.bury_some(30)
    async with desk.working():
        tally = await desk.replay(desk.order(**CAUSE), Bounds(canary=0, per_second=None, stop_at_percent=100))
    assert (tally.replayed, tally.failed, tally.ended) == (30, 30, Ended.DONE)
    assert len(await desk.open_letters()) == 30


async def test_the_rate_holds(desk: Desk) -> None:
    await desk.bury_some(30)
    desk.mend()
    began = asyncio.get_running_loop().time()
    async with desk.working():
        await desk.replay(desk.order(**CAUSE), Bounds(canary=0, per_second=25))
    assert asyncio.get_running_loop().time() - began > 1.0
    await desk.assert_applied_once(30)


async def test_without_a_worker_a_run_gives_up_waiting_and_nothing_is_lost(desk: Desk) -> None:
    await desk.bury_some(30)
    desk.mend()
    tally = await desk.replay(desk.order(**CAUSE), FAST, patience_seconds=0.5)
    assert (tally.ended, tally.replayed, tally.waiting) == (Ended.NO_VERDICTS, 10, 10)
    async with desk.working():
        again = await desk.replay(desk.order(**CAUSE), FAST)
    assert (again.ended, again.replayed) == (Ended.DONE, 20)
    await desk.shop.work()
    await desk.assert_applied_once(30)


async def test_an_interrupted_run_is_recorded_and_the_next_one_goes_on(desk: Desk) -> None:
    await desk.bury_some(120)
    desk.mend()
    async with desk.working():
        running = asyncio.create_task(desk.replay(desk.order(**CAUSE), Bounds(canary=10, per_second=100)))
        await desk.shop.until("SELECT count(*) >= 30 FROM statesvc.dead_letter WHERE resolved_at IS NOT NULL", wanted=True)
        running.cancel("Ctrl-C")
        with pytest.raises(asyncio.CancelledError):
            await running
        ended = (await desk.actions())[-1]["details"]
        assert ended["ended"] == "interrupted"
        assert 10 <= ended["replayed"] < 120
        again = await desk.replay(desk.order(**CAUSE), FAST)
        assert again.planned == 120 - ended["replayed"]
    await desk.shop.work()
    await desk.assert_applied_once(120)


async def test_two_runs_at_the_same_time_share_the_letters(desk: Desk) -> None:
    await desk.bury_some(200)
    desk.mend()
    async with desk.working():
        other = Desk(desk.shop, desk.shop.connection)
        found = await plan(desk.connection, desk.order(**CAUSE))
        tallies = await asyncio.gather(
            desk.replay(desk.order(**CAUSE), Bounds(canary=0, per_second=400), found=found),
            _second_operator(other, found),
        )
    assert sum(tally.replayed for tally in tallies) == 200
    await desk.assert_applied_once(200)


async def _second_operator(desk: Desk, found: Any) -> Any:
    async with await AsyncConnection.connect(desk.shop.database.service_dsn, autocommit=True) as connection:
        desk.connection = connection
        return await desk.replay(desk.order(**CAUSE), Bounds(canary=0, per_second=400), found=found)


async def test_what_cannot_be_replayed_is_counted_and_the_rest_goes_on(desk: Desk) -> None:
    letters = await desk.bury_some(25)
    desk.mend()
    await desk.shop.as_owner(f"UPDATE statesvc.dead_letter SET sealed_key = NULL WHERE dead_letter_id IN ({letters[0]}, {letters[15]})")
    async with desk.working():
        tally = await desk.replay(desk.order(**CAUSE), FAST)
    assert (tally.replayed, tally.refused, tally.ended) == (23, {Obstacle.ERASED: 2}, Ended.DONE)
    assert await desk.open_letters() == [letters[0], letters[15]]


async def test_only_what_was_buried_in_that_time_is_meant(desk: Desk) -> None:
    (early,) = await desk.bury_some(1)
    await desk.shop.database.clock.advance(3600)
    now = await desk.shop.database.clock.now()
    await desk.bury(unread(7))
    assert (await plan(desk.connection, desk.order(**CAUSE, since=now))).letters == 1
    assert (await plan(desk.connection, desk.order(**CAUSE, until=now))).letters == 1
    desk.mend()
    async with desk.working():
        await desk.replay(desk.order(**CAUSE, since=now), FAST)
    assert await desk.open_letters() == [early]


async def test_discarded_letters_stand_in_the_record_and_are_never_replayed(desk: Desk) -> None:
    letters = await desk.bury_some(5)
    order = desk.order(why="they were test messages", **CAUSE)
    assert await discard(desk.connection, order, up_to=letters[2]) == 3
    assert await discard(desk.connection, order, up_to=letters[2]) == 0
    (action,) = await desk.actions()
    assert (action["verb"], action["details"]["discarded"], action["details"]["why"]) == ("discard", 3, "they were test messages")
    assert UUID(action["details"]["run"]) == order.run_id
    desk.mend()
    async with desk.working():
        tally = await desk.replay(desk.order(**CAUSE), FAST)
    assert tally.replayed == 2
    found = await desk.shop.rows("SELECT resolution, count(*) FROM statesvc.dead_letter GROUP BY 1 ORDER BY 1")
    assert found == [("discarded", 3), ("replayed", 2)]


async def test_the_oldest_are_replayed_first_and_the_horizon_is_the_newest(desk: Desk) -> None:
    letters = await desk.bury_some(12)
    assert await horizon(desk.connection) == letters[-1]
    tally = await desk.replay(desk.order(**CAUSE), Bounds(canary=4), patience_seconds=0.3)
    assert tally.replayed == 4
    assert await desk.open_letters() == letters[4:]

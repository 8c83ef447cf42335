"""A replay of many: canary, stop, bounds, interruption; each dead letter once, and the record of it."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from statesvc.database.wakeups.channels import READY_NOW
from statesvc.repair.dead_letters.dead_letter import Obstacle
from statesvc.repair.dead_letters.put_back import discard
from statesvc.repair.dead_letters.replay_pace import ReplayEnd, ReplayLimits
from statesvc.repair.dead_letters.replay_plan import newest_dead_letter, plan_replay
from statesvc.repair.dead_letters.replay_run import ReplayBudget
from tests.statesvc.repair.dead_letters.conftest import Desk
from tests.statesvc.repair.dead_letters.planted import unread
from tests.world.shop import CARRIER_ID

pytestmark = pytest.mark.slow

FAST = ReplayLimits(canary=10, per_second=None)
CAUSE = {"carrier_id": CARRIER_ID, "cause": "normalizer_failed"}


async def test_all_that_match_are_replayed_and_the_record_says_so(desk: Desk) -> None:
    await desk.bury_some(300)
    desk.mend()
    order = desk.order(why="normalizer mended", **CAUSE)
    async with desk.working():
        progress = await desk.replay(order, FAST)
    assert (
        progress.replayed,
        progress.settled,
        progress.failed,
        progress.waiting,
        progress.ended,
    ) == (300, 300, 0, 0, ReplayEnd.DONE)
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
        "canary": 10,
        "stop_at_percent": "5.0",
    }
    assert (ended["verb"], ended["details"]["run"], ended["details"]["ended"]) == (
        "replay_ended",
        str(order.run_id),
        "done",
    )
    assert (ended["details"]["replayed"], ended["details"]["settled"]) == (300, 300)
    assert await desk.shop.rows("SELECT DISTINCT run_id FROM statesvc.dead_letter") == [
        (order.run_id,)
    ]
    assert [progress.replayed for progress in desk.seen] == sorted(
        progress.replayed for progress in desk.seen
    )


async def test_a_canary_that_fails_again_leaves_the_rest_alone(desk: Desk) -> None:
    dead_letters = await desk.bury_some(40)
    async with desk.working():
        progress = await desk.replay(desk.order(**CAUSE), FAST)
    assert (progress.ended, progress.replayed) == (ReplayEnd.CANARY_FAILED, 10)
    await desk.shop.work()
    left = await desk.open_dead_letters()
    assert set(dead_letters[10:]) < set(left)
    assert len(left) == 40, "the ten are dead letters again"
    assert (await desk.actions())[-1]["details"]["ended"] == "canary_failed"


async def test_a_run_stops_when_errors_rise(desk: Desk) -> None:
    await desk.bury_some(40)
    await desk.bury(*(unread(number, hopeless=True) for number in range(40, 300)))
    desk.mend()
    async with desk.working():
        # a run is as far ahead of its verdicts as it may be: a slow worker would else get all before the first failure
        progress = await desk.replay(
            desk.order(**CAUSE), ReplayLimits(canary=10, per_second=200, waiting_max=50)
        )
    assert progress.ended is ReplayEnd.ERRORS_ROSE
    assert progress.replayed < 200
    assert len(await desk.open_dead_letters()) > 200
    await desk.shop.work()
    await desk.assert_applied_once(40)


async def test_what_is_buried_again_during_a_run_is_no_part_of_it(desk: Desk) -> None:
    await desk.bury_some(30)
    async with desk.working():
        progress = await desk.replay(
            desk.order(**CAUSE), ReplayLimits(canary=0, per_second=None, stop_at_percent=100)
        )
    assert (progress.replayed, progress.failed, progress.ended) == (30, 30, ReplayEnd.DONE)
    assert len(await desk.open_dead_letters()) == 30


async def test_the_rate_holds(desk: Desk) -> None:
    await desk.bury_some(30)
    desk.mend()
    began = asyncio.get_running_loop().time()
    async with desk.working():
        await desk.replay(desk.order(**CAUSE), ReplayLimits(canary=0, per_second=25))
    assert asyncio.get_running_loop().time() - began > 1.0
    await desk.assert_applied_once(30)


async def test_without_a_worker_a_run_gives_up_waiting_and_nothing_is_lost(desk: Desk) -> None:
    await desk.bury_some(30)
    desk.mend()
    progress = await desk.replay(desk.order(**CAUSE), FAST, patience_seconds=0.5)
    assert (progress.ended, progress.replayed, progress.waiting) == (ReplayEnd.NO_VERDICTS, 10, 10)
    async with desk.working():
        again = await desk.replay(desk.order(**CAUSE), FAST)
    assert (again.ended, again.replayed) == (ReplayEnd.DONE, 20)
    await desk.shop.work()
    await desk.assert_applied_once(30)


async def test_an_interrupted_run_is_recorded_and_the_next_one_goes_on(desk: Desk) -> None:
    await desk.bury_some(120)
    desk.mend()
    async with desk.working():
        running = asyncio.create_task(
            desk.replay(desk.order(**CAUSE), ReplayLimits(canary=10, per_second=100))
        )
        await desk.shop.until(
            "SELECT count(*) >= 30 FROM statesvc.dead_letter WHERE resolved_at IS NOT NULL",
            wanted=True,
        )
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


async def test_two_runs_at_the_same_time_share_the_work(desk: Desk) -> None:
    await desk.bury_some(200)
    desk.mend()
    async with desk.working():
        other = Desk(desk.shop, desk.shop.connection)
        found = await plan_replay(desk.connection, desk.order(**CAUSE))
        runs = await asyncio.gather(
            desk.replay(desk.order(**CAUSE), ReplayLimits(canary=0, per_second=400), found=found),
            _second_operator(other, found),
        )
    assert sum(progress.replayed for progress in runs) == 200
    await desk.assert_applied_once(200)


async def _second_operator(desk: Desk, found: Any) -> Any:
    async with await AsyncConnection.connect(
        desk.shop.database.service_dsn, autocommit=True
    ) as connection:
        desk.connection = connection
        return await desk.replay(
            desk.order(**CAUSE), ReplayLimits(canary=0, per_second=400), found=found
        )


async def test_what_cannot_be_replayed_is_counted_and_the_rest_goes_on(desk: Desk) -> None:
    dead_letters = await desk.bury_some(25)
    desk.mend()
    await desk.shop.as_owner(
        f"UPDATE statesvc.dead_letter SET sealed_key = NULL WHERE dead_letter_id IN ({dead_letters[0]}, {dead_letters[15]})"
    )
    async with desk.working():
        progress = await desk.replay(desk.order(**CAUSE), FAST)
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
        await desk.replay(desk.order(**CAUSE, since=now), FAST)
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
        progress = await desk.replay(desk.order(**CAUSE), FAST)
    assert progress.replayed == 2
    found = await desk.shop.rows(
        "SELECT resolution, count(*) FROM statesvc.dead_letter GROUP BY 1 ORDER BY 1"
    )
    assert found == [("discarded", 3), ("replayed", 2)]


async def test_the_oldest_are_replayed_first_and_a_run_ends_at_the_newest(desk: Desk) -> None:
    dead_letters = await desk.bury_some(12)
    assert await newest_dead_letter(desk.connection) == dead_letters[-1]
    progress = await desk.replay(desk.order(**CAUSE), ReplayLimits(canary=4), patience_seconds=0.3)
    assert progress.replayed == 4
    assert await desk.open_dead_letters() == dead_letters[4:]


async def call_until_done(
    desk: Desk, *, limits: ReplayLimits, budget: ReplayBudget
) -> list[ReplayEnd | None]:
    """Call with the position of the call before, all of one run; return how each ended."""
    order, position = desk.order(**CAUSE), None
    ends: list[ReplayEnd | None] = []
    while not ends or ends[-1] is ReplayEnd.LIMIT_REACHED:
        progress, position = await desk.call(order, limits, budget, position)
        ends.append(progress.ended)
    return ends


async def test_a_run_in_calls_goes_on_where_the_last_one_ended(desk: Desk) -> None:
    await desk.bury_some(25)
    desk.mend()
    async with desk.working():
        ends = await call_until_done(
            desk,
            limits=ReplayLimits(canary=4, per_second=None),
            budget=ReplayBudget(dead_letters_max=10),
        )
    assert ends == [ReplayEnd.LIMIT_REACHED, ReplayEnd.LIMIT_REACHED, ReplayEnd.DONE]
    await desk.shop.work()
    await desk.assert_applied_once(25)
    assert await desk.shop.value("SELECT count(DISTINCT run_id) FROM statesvc.dead_letter") == 1


async def test_a_call_waits_for_its_canary_and_stops_when_it_fails(desk: Desk) -> None:
    dead_letters = await desk.bury_some(30)
    async with desk.working():
        progress, _ = await desk.call(desk.order(**CAUSE), FAST, ReplayBudget(dead_letters_max=30))
    assert (progress.ended, progress.replayed, progress.remaining) == (
        ReplayEnd.CANARY_FAILED,
        10,
        20,
    )
    assert progress.failed > 0
    assert set(dead_letters[10:]) < set(await desk.open_dead_letters())


async def test_a_canary_that_has_no_verdict_yet_is_judged_by_the_next_call(desk: Desk) -> None:
    await desk.bury_some(30)
    order, budget = desk.order(**CAUSE), ReplayBudget(dead_letters_max=30)
    progress, position = await desk.call(order, FAST, budget, patience_seconds=0.3)
    assert (progress.ended, progress.waiting, progress.remaining) == (ReplayEnd.NO_VERDICTS, 10, 20)
    again, position = await desk.call(order, FAST, budget, position, patience_seconds=0.3)
    assert (again.ended, again.replayed, again.waiting) == (ReplayEnd.NO_VERDICTS, 0, 10), (
        "no second canary"
    )
    await desk.shop.work()
    failed, _ = await desk.call(order, FAST, budget, position)
    assert (failed.ended, failed.replayed, failed.failed, failed.remaining) == (
        ReplayEnd.CANARY_FAILED,
        0,
        10,
        20,
    )


async def test_a_call_whose_time_is_over_says_what_remains(desk: Desk) -> None:
    await desk.bury_some(30)
    progress, _ = await desk.call(
        desk.order(**CAUSE), FAST, ReplayBudget(dead_letters_max=30, seconds=0.3)
    )
    assert (progress.ended, progress.replayed, progress.remaining) == (
        ReplayEnd.LIMIT_REACHED,
        10,
        20,
    )


async def test_errors_that_rise_in_a_later_call_stop_the_run(desk: Desk) -> None:
    await desk.bury_some(30)
    desk.mend()
    order, limits, budget = (
        desk.order(**CAUSE),
        ReplayLimits(canary=5, per_second=None),
        ReplayBudget(dead_letters_max=30),
    )
    await desk.bury(*(unread(number, hopeless=True) for number in range(30, 90)))
    async with desk.working():
        progress, position = await desk.call(order, limits, budget)
        assert (progress.ended, progress.replayed) == (ReplayEnd.LIMIT_REACHED, 30)
        progress, position = await desk.call(order, limits, budget, position)
        assert (progress.ended, progress.replayed) == (ReplayEnd.LIMIT_REACHED, 30), (
            "put back before their verdicts were there"
        )
    await desk.shop.work()
    progress, _ = await desk.call(order, limits, budget, position)
    assert (progress.ended, progress.replayed, progress.remaining) == (ReplayEnd.ERRORS_ROSE, 0, 30)

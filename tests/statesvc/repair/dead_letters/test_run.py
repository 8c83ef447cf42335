"""A replay of many, in calls: each dead letter once, and the record of it."""

import asyncio
from uuid import UUID

import pytest

from statesvc.repair.dead_letters.dead_letter import Obstacle
from statesvc.repair.dead_letters.put_back import discard
from statesvc.repair.dead_letters.replay_plan import plan_replay
from statesvc.repair.dead_letters.replay_run import ReplayBudget, ReplayEnd, RunPosition
from tests.statesvc.repair.dead_letters.conftest import ALL, RepairHarness
from tests.statesvc.repair.dead_letters.planted import unread
from tests.world.worker_harness import CARRIER_ID

pytestmark = pytest.mark.slow

CAUSE = {"carrier_id": CARRIER_ID, "cause": "normalizer_failed"}


async def test_what_cannot_be_replayed_is_counted_and_the_rest_goes_on(
    repair: RepairHarness,
) -> None:
    dead_letters = await repair.bury_some(25)
    repair.mend()
    await repair.harness.as_owner(
        "UPDATE statesvc.dead_letter SET sealed_key = NULL WHERE dead_letter_id IN"
        f" ({dead_letters[0]}, {dead_letters[15]})"
    )
    async with repair.working():
        progress = await repair.replay(repair.request(**CAUSE))
    assert (progress.replayed, progress.refused, progress.ended) == (
        23,
        {Obstacle.ERASED: 2},
        ReplayEnd.DONE,
    )
    assert await repair.open_dead_letters() == [dead_letters[0], dead_letters[15]]


async def test_only_what_was_buried_in_that_time_is_meant(repair: RepairHarness) -> None:
    (early,) = await repair.bury_some(1)
    await repair.harness.database.clock.advance(3600)
    now = await repair.harness.database.clock.now()
    await repair.bury(unread(7))
    assert (
        await plan_replay(repair.connection, repair.request(**CAUSE, since=now))
    ).dead_letters == 1
    assert (
        await plan_replay(repair.connection, repair.request(**CAUSE, until=now))
    ).dead_letters == 1
    repair.mend()
    async with repair.working():
        await repair.replay(repair.request(**CAUSE, since=now))
    assert await repair.open_dead_letters() == [early]


async def test_what_was_discarded_stands_in_the_record_and_is_never_replayed(
    repair: RepairHarness,
) -> None:
    dead_letters = await repair.bury_some(5)
    order = repair.request(why="they were test messages", **CAUSE)
    assert await discard(repair.connection, order, up_to=dead_letters[2]) == 3
    assert await discard(repair.connection, order, up_to=dead_letters[2]) == 0
    (action,) = await repair.actions()
    assert (action["verb"], action["details"]["discarded"], action["details"]["why"]) == (
        "discard",
        3,
        "they were test messages",
    )
    assert UUID(action["details"]["run"]) == order.run_id
    repair.mend()
    async with repair.working():
        progress = await repair.replay(repair.request(**CAUSE))
    assert progress.replayed == 2
    found = await repair.harness.rows(
        "SELECT resolution, count(*) FROM statesvc.dead_letter GROUP BY 1 ORDER BY 1"
    )
    assert found == [("discarded", 3), ("replayed", 2)]


async def test_the_oldest_go_first_and_what_is_buried_again_is_no_part_of_the_run(
    repair: RepairHarness,
) -> None:
    dead_letters = await repair.bury_some(12)
    order, few = repair.request(**CAUSE), ReplayBudget(dead_letters_max=4)
    progress, position = await repair.call(order, few)
    assert (progress.replayed, progress.ended, progress.remaining) == (
        4,
        ReplayEnd.LIMIT_REACHED,
        8,
    )
    assert await repair.open_dead_letters() == dead_letters[4:]
    await repair.harness.work()
    assert len(await repair.open_dead_letters()) == 12, "the four are dead letters again"
    rest, _ = await repair.call(order, ALL, position)
    assert (rest.replayed, rest.ended, rest.remaining) == (8, ReplayEnd.DONE, 0)
    assert (
        await repair.harness.value("SELECT count(DISTINCT run_id) FROM statesvc.dead_letter") == 1
    )


async def test_a_call_whose_time_is_over_says_what_remains(repair: RepairHarness) -> None:
    await repair.bury_some(3)
    late = ReplayBudget(dead_letters_max=30, seconds=0)
    progress, _ = await repair.call(repair.request(**CAUSE), late)
    assert (progress.ended, progress.replayed, progress.remaining) == (
        ReplayEnd.LIMIT_REACHED,
        0,
        3,
    )


async def test_an_interrupted_call_is_recorded_and_the_next_one_goes_on(
    repair: RepairHarness,
) -> None:
    await repair.bury_some(5)
    repair.mend()
    order, few = repair.request(**CAUSE), ReplayBudget(dead_letters_max=3)
    run = repair.run(order, RunPosition(up_to=(await repair.open_dead_letters())[-1]), few)

    async def cancelled(_channels: frozenset[str]) -> None:
        raise asyncio.CancelledError

    run.wake = cancelled
    with pytest.raises(asyncio.CancelledError):
        await run.replay()
    ended = (await repair.actions())[-1]["details"]
    assert (ended["ended"], ended["replayed"]) == ("interrupted", 3)
    assert (await repair.replay(repair.request(**CAUSE))).replayed == 2
    await repair.harness.work()
    await repair.assert_applied_once(5)

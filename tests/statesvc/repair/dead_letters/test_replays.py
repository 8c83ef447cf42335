"""Messages are put back once, whoever does it too, and never while they wait or once they took
effect.
"""

import asyncio
from uuid import UUID

import psycopg
import pytest

from statesvc.reading.rollout_store import set_hold
from statesvc.repair.dead_letters.dead_letter import SENTENCES, Obstacle, Way
from statesvc.repair.dead_letters.put_back import (
    ReplayVerdict,
    discard,
    obstacle_of,
    put_back,
    verdicts,
)
from statesvc.repair.dead_letters.replay_plan import ObstacleCount, make_plan, plan_replay
from statesvc.repair.dead_letters.replay_run import ReplayBudget, ReplayEnd, RunPosition
from tests.statesvc.repair.dead_letters.conftest import ALL, RepairHarness
from tests.statesvc.repair.dead_letters.planted import unread
from tests.world.worker_harness import CARRIER_ID, push_body


async def test_a_message_goes_back_under_its_id_as_if_never_tried_and_takes_effect(
    repair: RepairHarness,
) -> None:
    (message_id,) = await repair.harness.push(unread(1))
    await repair.harness.work()
    (dead_letter_id,) = await repair.open_dead_letters()
    assert (
        await repair.harness.value("SELECT cause FROM statesvc.dead_letter") == "normalizer_failed"
    )
    order = repair.request(dead_letter_id, why="mended")
    assert await put_back(repair.connection, order, [dead_letter_id]) == {dead_letter_id: None}
    assert await repair.harness.rows(
        "SELECT message_id, attempts, retries, token, stage, worker FROM statesvc.inbox"
    ) == [(message_id, 0, 0, None, "raw", None)]
    assert await repair.harness.rows(
        "SELECT resolution, resolved_by, why, run_id FROM statesvc.dead_letter"
    ) == [("replayed", "tester", "mended", order.run_id)]
    assert await verdicts(repair.connection, [dead_letter_id]) == {
        dead_letter_id: ReplayVerdict.WAITING
    }
    repair.mend()
    await repair.harness.work()
    await repair.assert_applied_once(1)
    assert await verdicts(repair.connection, [dead_letter_id]) == {
        dead_letter_id: ReplayVerdict.SETTLED
    }


async def test_of_two_replays_at_the_same_time_each_is_put_back_by_one(
    repair: RepairHarness,
) -> None:
    dead_letters = await repair.bury_some(120)
    repair.mend()

    async def operator(order_of_ids: list[int]) -> list[int]:
        async with await psycopg.AsyncConnection.connect(
            repair.harness.database.service_dsn, autocommit=True
        ) as connection:
            mine = []
            for start in range(0, len(order_of_ids), 10):
                answers = await put_back(
                    connection, repair.request(), order_of_ids[start : start + 10]
                )
                mine += [
                    dead_letter_id
                    for dead_letter_id, obstacle in answers.items()
                    if obstacle is None
                ]
            return mine

    async with repair.working():
        found = await asyncio.gather(
            operator(dead_letters), operator(dead_letters), operator(dead_letters[::-1])
        )
    assert sorted(dead_letter_id for mine in found for dead_letter_id in mine) == dead_letters
    await repair.harness.work()
    await repair.assert_applied_once(120)


async def test_an_open_dead_letter_of_a_message_that_waits_or_took_effect_is_refused(
    repair: RepairHarness,
) -> None:
    (dead_letter_id,) = await repair.bury_some(1)
    await put_back(repair.connection, repair.request(dead_letter_id), [dead_letter_id])
    reopen = (
        "UPDATE statesvc.dead_letter SET resolved_at = NULL, resolution = NULL, resolved_by = NULL"
    )
    await repair.harness.as_owner(reopen)
    assert await put_back(repair.connection, repair.request(dead_letter_id), [dead_letter_id]) == {
        dead_letter_id: Obstacle.WAITING
    }
    repair.mend()
    await repair.harness.work()
    assert await put_back(repair.connection, repair.request(dead_letter_id), [dead_letter_id]) == {
        dead_letter_id: Obstacle.SETTLED
    }
    await repair.assert_applied_once(1)


async def test_a_dead_letter_says_why_it_cannot_be_replayed(repair: RepairHarness) -> None:
    erased, gone, retained, held = await repair.bury_some(4)
    await repair.harness.as_owner(
        f"UPDATE statesvc.dead_letter SET sealed_key = NULL WHERE dead_letter_id = {erased}"
    )
    of = (
        f"(SELECT message_id FROM statesvc.dead_letter WHERE dead_letter_id IN ({gone},"
        f" {retained}))"
    )
    await repair.harness.as_owner(
        f"INSERT INTO statesvc.body_retained SELECT * FROM statesvc.body WHERE message_id IN {of}"
    )
    await repair.harness.as_owner(f"DELETE FROM statesvc.body WHERE message_id IN {of}")
    await repair.harness.as_owner(
        "DELETE FROM statesvc.body_retained k USING statesvc.dead_letter d WHERE d.message_id ="
        f" k.message_id AND d.dead_letter_id = {gone}"
    )
    assert await put_back(repair.connection, repair.request(), [erased, gone, retained]) == {
        erased: Obstacle.ERASED,
        gone: Obstacle.BODY_GONE,
        retained: None,
    }
    await set_hold(
        repair.connection, carrier_id=CARRIER_ID, hold=True, why="a test", actor="tester"
    )
    assert await obstacle_of(repair.connection, held) is Obstacle.HELD
    assert await put_back(repair.connection, repair.request(), [held]) == {held: Obstacle.HELD}
    found = await plan_replay(repair.connection, repair.request(carrier_id=CARRIER_ID))
    assert (found.dead_letters, found.replayable) == (3, 0)
    assert found.obstacles == {Obstacle.ERASED: 1, Obstacle.BODY_GONE: 1, Obstacle.HELD: 1}


async def test_what_is_read_again_is_never_put_back(repair: RepairHarness) -> None:
    await repair.harness.push(
        push_body({"number": "A1", "kind": "unmapped", "code": "NEW"}, rejected=1)
    )
    await repair.harness.work()
    dead_letters = await repair.open_dead_letters()
    assert len(dead_letters) == 2
    cursor = await repair.connection.execute(
        "SELECT obstacle FROM statesvc.replay_dead_letters(%s, 'tester', '', gen_random_uuid())",
        (dead_letters,),
    )
    assert await cursor.fetchall() == [("read_again",)] * 2
    assert await repair.open_dead_letters() == dead_letters


def test_a_plan_adds_up_and_leaves_out_what_this_release_cannot_read() -> None:
    found = make_plan(
        [
            ObstacleCount("message", "unreadable", "acme", None, 7),
            ObstacleCount("message", "unreadable", "acme", Obstacle.ERASED, 2),
            ObstacleCount("message", "unreadable", "gone", None, 1),
            ObstacleCount("notification", "delivery_exhausted", "gone", None, 4),
        ],
        up_to=99,
        carriers=frozenset({"acme"}),
    )
    assert [
        (line.dead_letters, line.replayable, line.carrier_id, line.way) for line in found.lines
    ] == [
        (9, 7, "acme", Way.PUT_BACK),
        (4, 4, "gone", Way.SEND_AGAIN),
        (1, 0, "gone", Way.PUT_BACK),
    ]
    assert (found.dead_letters, found.replayable) == (14, 11)
    assert found.obstacles == {Obstacle.ERASED: 2, Obstacle.UNKNOWN_CARRIER: 1}


def test_every_obstacle_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Obstacle)


CAUSE = {"carrier_id": CARRIER_ID, "cause": "normalizer_failed"}


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

"""Putting a message back: once, whoever does it too, and never what is in its queue or has taken
effect.
"""

import asyncio

import psycopg

from statesvc.reading.rollout_store import set_hold
from statesvc.repair.dead_letters.dead_letter import SENTENCES, Obstacle, Way
from statesvc.repair.dead_letters.put_back import ReplayVerdict, obstacle_of, put_back, verdicts
from statesvc.repair.dead_letters.replay_plan import ObstacleCount, make_plan, plan_replay
from tests.statesvc.repair.dead_letters.conftest import RepairHarness
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


async def test_what_fails_again_is_a_new_dead_letter_that_can_be_replayed(
    repair: RepairHarness,
) -> None:
    (first,) = await repair.bury_some(1)
    await put_back(repair.connection, repair.request(first), [first])
    await repair.harness.work()
    (second,) = await repair.open_dead_letters()
    assert second > first
    assert await verdicts(repair.connection, [first]) == {first: ReplayVerdict.BURIED}
    assert await put_back(repair.connection, repair.request(second), [second]) == {second: None}
    repair.mend()
    await repair.harness.work()
    await repair.assert_applied_once(1)


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

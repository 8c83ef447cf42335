"""Putting a message back: once, whoever does it too, and never what is in its queue or has taken effect."""

import asyncio
from typing import Any

import psycopg
import pytest

from statesvc.inbox.rollouts.dial import set_hold
from statesvc.repair.dead_letters.dead_letter import Way, way_of
from statesvc.repair.dead_letters.obstacle import SENTENCES, Obstacle
from statesvc.repair.dead_letters.put_back import Verdict, next_letters, obstacle_of, plan, put_back, verdicts
from statesvc.repair.dead_letters.replay_plan import Counted, make_plan
from tests.statesvc.repair.dead_letters.conftest import Desk
from tests.statesvc.repair.dead_letters.planted import unread
from tests.world.shop import CARRIER_ID, says


async def test_a_message_goes_back_under_its_id_as_if_never_tried_and_takes_effect(desk: Desk) -> None:
    (message_id,) = await desk.shop.push(unread(1))
    await desk.shop.work()
    (letter_id,) = await desk.open_letters()
    assert await desk.shop.value("SELECT cause FROM statesvc.dead_letter") == "normalizer_failed"
    order = desk.order(letter_id, why="mended")
    assert await put_back(desk.connection, order, [letter_id]) == {letter_id: None}
    assert await desk.shop.rows("SELECT message_id, attempts, retries, token, stage, worker FROM statesvc.inbox") == [
        (message_id, 0, 0, None, "raw", None)
    ]
    assert await desk.shop.rows("SELECT resolution, resolved_by, why, run_id FROM statesvc.dead_letter") == [
        ("replayed", "tester", "mended", order.run_id)
    ]
    assert await verdicts(desk.connection, [letter_id]) == {letter_id: Verdict.WAITING}
    desk.mend()
    await desk.shop.work()
    await desk.assert_applied_once(1)
    assert await verdicts(desk.connection, [letter_id]) == {letter_id: Verdict.SETTLED}


async def test_a_second_replay_finds_it_done(desk: Desk) -> None:
    (letter_id,) = await desk.bury_some(1)
    assert await put_back(desk.connection, desk.order(letter_id), [letter_id]) == {letter_id: None}
    assert await put_back(desk.connection, desk.order(letter_id), [letter_id]) == {letter_id: Obstacle.REPLAYED}
    desk.mend()
    await desk.shop.work()
    assert await put_back(desk.connection, desk.order(letter_id), [letter_id]) == {letter_id: Obstacle.REPLAYED}
    await desk.assert_applied_once(1)


async def test_what_fails_again_is_a_new_letter_that_can_be_replayed(desk: Desk) -> None:
    (first,) = await desk.bury_some(1)
    await put_back(desk.connection, desk.order(first), [first])
    await desk.shop.work()
    (second,) = await desk.open_letters()
    assert second > first
    assert await verdicts(desk.connection, [first]) == {first: Verdict.BURIED}
    assert await put_back(desk.connection, desk.order(second), [second]) == {second: None}
    desk.mend()
    await desk.shop.work()
    await desk.assert_applied_once(1)


async def test_of_two_replays_at_the_same_time_each_letter_is_put_back_by_one(desk: Desk) -> None:
    letters = await desk.bury_some(120)
    desk.mend()

    async def operator(order_of_ids: list[int]) -> list[int]:
        async with await psycopg.AsyncConnection.connect(desk.shop.database.service_dsn, autocommit=True) as connection:
            mine = []
            for start in range(0, len(order_of_ids), 10):
                answers = await put_back(connection, desk.order(), order_of_ids[start : start + 10])
                mine += [letter_id for letter_id, obstacle in answers.items() if obstacle is None]
            return mine

    async with desk.working():
        found = await asyncio.gather(operator(letters), operator(letters), operator(letters[::-1]))
    assert sorted(letter_id for mine in found for letter_id in mine) == letters
    await desk.shop.work()
    await desk.assert_applied_once(120)


async def test_a_replay_that_is_cut_off_changes_nothing(desk: Desk) -> None:
    letters = await desk.bury_some(3)
    async with desk.connection.transaction(force_rollback=True):
        await put_back(desk.connection, desk.order(), letters)
    assert await desk.open_letters() == letters
    assert await desk.shop.value("SELECT count(*) FROM statesvc.inbox") == 0


async def test_without_the_look_at_what_became_of_it_a_letter_would_be_put_back_twice(desk: Desk) -> None:
    """The tests above must be able to fail."""
    (letter_id,) = await desk.bury_some(1)
    await desk.shop.as_owner(
        "CREATE OR REPLACE FUNCTION statesvc.replay_obstacle(d statesvc.dead_letter) RETURNS text LANGUAGE sql STABLE RETURN NULL::text"
    )
    desk.mend()
    for _ in range(2):
        assert await put_back(desk.connection, desk.order(letter_id), [letter_id]) == {letter_id: None}
        messages = await desk.shop.claim()
        assert len(messages) == 1, "the second time it was settled already"
        await desk.shop.connection.execute("DELETE FROM statesvc.inbox")


async def test_an_open_letter_of_a_message_that_waits_or_took_effect_is_refused(desk: Desk) -> None:
    (letter_id,) = await desk.bury_some(1)
    await put_back(desk.connection, desk.order(letter_id), [letter_id])
    reopen = "UPDATE statesvc.dead_letter SET resolved_at = NULL, resolution = NULL, resolved_by = NULL"
    await desk.shop.as_owner(reopen)
    assert await put_back(desk.connection, desk.order(letter_id), [letter_id]) == {letter_id: Obstacle.WAITING}
    desk.mend()
    await desk.shop.work()
    assert await put_back(desk.connection, desk.order(letter_id), [letter_id]) == {letter_id: Obstacle.SETTLED}
    await desk.assert_applied_once(1)


async def test_a_letter_says_why_it_cannot_be_replayed(desk: Desk) -> None:
    erased, gone, kept, held = await desk.bury_some(4)
    await desk.shop.as_owner(f"UPDATE statesvc.dead_letter SET sealed_key = NULL WHERE dead_letter_id = {erased}")
    of = f"(SELECT message_id FROM statesvc.dead_letter WHERE dead_letter_id IN ({gone}, {kept}))"
    await desk.shop.as_owner(f"INSERT INTO statesvc.body_kept SELECT * FROM statesvc.body WHERE message_id IN {of}")
    await desk.shop.as_owner(f"DELETE FROM statesvc.body WHERE message_id IN {of}")
    await desk.shop.as_owner(
        f"DELETE FROM statesvc.body_kept k USING statesvc.dead_letter d WHERE d.message_id = k.message_id AND d.dead_letter_id = {gone}"
    )
    assert await put_back(desk.connection, desk.order(), [erased, gone, kept]) == {
        erased: Obstacle.ERASED,
        gone: Obstacle.BODY_GONE,
        kept: None,
    }
    await set_hold(desk.connection, carrier_id=CARRIER_ID, hold=True, why="a test", actor="tester")
    assert await obstacle_of(desk.connection, held) is Obstacle.HELD
    assert await put_back(desk.connection, desk.order(), [held]) == {held: Obstacle.HELD}
    found = await plan(desk.connection, desk.order(carrier_id=CARRIER_ID))
    assert (found.letters, found.replayable) == (3, 0)
    assert found.obstacles == {Obstacle.ERASED: 1, Obstacle.BODY_GONE: 1, Obstacle.HELD: 1}


async def test_what_is_read_again_is_never_put_back(desk: Desk) -> None:
    await desk.shop.push(says({"number": "A1", "kind": "unmapped", "code": "NEW"}, rejected=1))
    await desk.shop.work()
    letters = await desk.open_letters()
    assert len(letters) == 2
    cursor = await desk.connection.execute(
        "SELECT obstacle FROM statesvc.replay_dead_letters(%s, 'tester', '', gen_random_uuid())", (letters,)
    )
    assert await cursor.fetchall() == [("read_again",)] * 2
    assert await desk.open_letters() == letters


@pytest.mark.parametrize("way", list(Way))
async def test_the_statements_know_the_ways_as_the_code_does(desk: Desk, way: Way) -> None:
    kinds: list[tuple[Any, str]] = [
        ("message", "unreadable"),
        ("message", "rejected_member"),
        ("code", "unknown_code"),
        ("notification", "delivery_exhausted"),
    ]
    for kind, cause in kinds:
        await desk.shop.connection.execute(
            "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at) VALUES (%s, %s, %s, statesvc.clock())",
            (kind, cause, CARRIER_ID),
        )
    found = await next_letters(desk.connection, desk.order(), [way], after=0, up_to=100, limit=10)
    assert [letter.kind for letter in found] == [kind for kind, cause in kinds if way_of(kind, cause) is way]


def test_a_plan_adds_up_and_leaves_out_what_this_release_cannot_read() -> None:
    found = make_plan(
        [
            Counted("message", "unreadable", "acme", None, 7),
            Counted("message", "unreadable", "acme", Obstacle.ERASED, 2),
            Counted("message", "unreadable", "gone", None, 1),
            Counted("notification", "delivery_exhausted", "gone", None, 4),
        ],
        up_to=99,
        carriers=frozenset({"acme"}),
    )
    assert [(line.letters, line.replayable, line.carrier_id, line.way) for line in found.lines] == [
        (9, 7, "acme", Way.PUT_BACK),
        (4, 4, "gone", Way.SEND_AGAIN),
        (1, 0, "gone", Way.PUT_BACK),
    ]
    assert (found.letters, found.replayable) == (14, 11)
    assert found.obstacles == {Obstacle.ERASED: 2, Obstacle.UNKNOWN_CARRIER: 1}


def test_every_obstacle_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Obstacle)

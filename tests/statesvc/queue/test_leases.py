"""Leases: their end, their fencing, what is charged, and who is claimed alone."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest


async def test_a_lease_that_ran_out_is_claimed_by_another_and_the_old_token_does_nothing_any_more(
    inbox: Any,
) -> None:
    await inbox.put("ups")
    (old,) = await inbox.claim()
    assert await inbox.claim(worker="other", sweep=True) == []
    await inbox.expire()
    (new,) = await inbox.claim(worker="other")
    assert (new.message_id, new.attempts) == (old.message_id, 2)
    assert new.token != old.token

    before = await inbox.rows("SELECT * FROM statesvc.inbox")
    assert await inbox.retry(old.token, old.message_id) == 0
    assert await inbox.bury(old.token, old.message_id) == 0
    assert await inbox.extend(old.token) == 0
    assert await inbox.release(old.token) == 0
    assert await inbox.hand_over(old.token, old.message_id) == 0
    assert await inbox.rows("SELECT * FROM statesvc.inbox") == before
    assert await inbox.dead() == []


async def test_a_token_acts_on_its_own_messages_only(inbox: Any) -> None:
    await inbox.put("ups", "ups")
    (mine,) = await inbox.claim(1)
    (theirs,) = await inbox.claim(1)
    assert await inbox.bury(mine.token, mine.message_id, theirs.message_id) == 1
    assert await inbox.value("SELECT token FROM statesvc.inbox") == theirs.token


@pytest.mark.parametrize(
    ("before", "seconds"), [(0, 0.1), (1, 0.1), (2, 0.2), (11, 3.2), (12, 6.4), (1000, 6.4)]
)
async def test_what_is_postponed_comes_back_in_step_with_others(
    inbox: Any, before: int, seconds: float
) -> None:
    # all that wait for one lock are claimed together, whenever each was postponed
    await inbox.put("ups")
    await inbox.rows("UPDATE statesvc.inbox SET postponed = %s RETURNING 1", before)
    (held,) = await inbox.claim()
    earliest = await inbox.value("SELECT statesvc.clock()")
    assert await inbox.postpone(held.token, held.message_id) == 1
    ((available_at, attempts, postponed, is_in_step),) = await inbox.rows(
        "SELECT available_at, attempts, postponed, mod(extract(epoch FROM available_at), %s) = 0"
        " FROM statesvc.inbox",
        Decimal(str(seconds)),
    )
    assert is_in_step
    latest = await inbox.value("SELECT statesvc.clock()") + timedelta(seconds=seconds)
    assert earliest < available_at <= latest
    assert (attempts, postponed) == (0, min(before + 1, 1000))
    assert await inbox.postpone(held.token, held.message_id) == 0


async def test_an_extended_lease_is_not_claimed_at_its_first_end(inbox: Any) -> None:
    await inbox.put("ups")
    (held,) = await inbox.claim()
    await inbox.advance(20)
    assert await inbox.extend(held.token) == 1
    await inbox.advance(20)
    assert await inbox.claim(sweep=True) == []
    await inbox.advance(11)
    assert len(await inbox.claim()) == 1


async def test_attempts_are_counted_at_the_claim_so_that_a_worker_which_dies_is_charged(
    inbox: Any,
) -> None:
    await inbox.put("ups")
    assert [m.attempts for m in await inbox.claim()] == [1]
    assert await inbox.value("SELECT attempts FROM statesvc.inbox") == 1
    await inbox.expire()
    assert [m.attempts for m in await inbox.claim()] == [2]


async def test_each_message_of_a_worker_that_died_is_claimed_alone(inbox: Any) -> None:
    await inbox.put("ups", "ups", "fedex")
    assert len(await inbox.claim()) == 3
    await inbox.expire()
    await inbox.put("ups")
    alone = [await inbox.claim() for _ in range(3)]
    assert [len(batch) for batch in alone] == [1, 1, 1]
    assert {batch[0].attempts for batch in alone} == {2}
    assert [m.attempts for m in await inbox.claim()] == [1]


async def test_five_deaths_bury_a_message_and_hold_nobody_else_up(inbox: Any) -> None:
    ((killer, _),) = await inbox.put("ups")
    for attempt in range(1, 6):
        assert [m.attempts for m in await inbox.claim()] == [attempt]
        await inbox.expire()
    ((next_one, _),) = await inbox.put("ups")
    assert [m.message_id for m in await inbox.claim()] == [next_one]
    assert await inbox.dead() == [(killer, "worker_died", 5)]
    assert await inbox.value("SELECT sealed_key FROM statesvc.dead_letter") == b"key"


async def test_retries_charge_nobody(inbox: Any) -> None:
    await inbox.put("ups")
    for n in range(8):
        (held,) = await inbox.claim()
        assert (held.attempts, held.retries) == (n + 1, n)
        assert await inbox.retry(held.token, held.message_id, seconds=5) == 1
        assert await inbox.claim(sweep=True) == []
        await inbox.advance(6)
    assert len(await inbox.claim()) == 1
    await inbox.expire()
    assert len(await inbox.claim()) == 1, "one death after eight retries is one death"
    assert await inbox.dead() == []


async def test_release_gives_back_at_once_and_uncharged(inbox: Any) -> None:
    await inbox.put("ups", "ups")
    held = await inbox.claim()
    assert await inbox.release(held[0].token) == 2
    assert [(m.attempts, m.retries) for m in await inbox.claim()] == [(1, 0), (1, 0)]


async def test_bury_keeps_what_a_replay_needs(inbox: Any) -> None:
    ((message_id, _),) = await inbox.put("ups")
    (held,) = await inbox.claim(worker="worker-7")
    assert await inbox.bury(held.token, message_id) == 1
    kept = await inbox.rows(
        "SELECT kind, cause, detail, carrier_id, message_id, attempts, worker, sealed_key FROM"
        " statesvc.dead_letter"
    )
    assert kept == [("message", "unreadable", "why", "ups", message_id, 1, "worker-7", b"key")]
    assert await inbox.value("SELECT count(*) FROM statesvc.inbox") == 0


async def test_what_a_foreign_worker_read_waits_for_a_worker_that_appends(inbox: Any) -> None:
    ((message_id, _),) = await inbox.put("ups")
    (held,) = await inbox.claim(stage="raw")
    assert await inbox.hand_over(held.token, message_id, uuid4()) == 1
    assert await inbox.claim(stage="raw") == []
    (normalized,) = await inbox.claim(stage="any")
    assert (normalized.message_id, normalized.stage, normalized.attempts) == (
        message_id,
        "normalized",
        1,
    )
    assert await inbox.hand_over(normalized.token, message_id) == 0, "it was read once"
    assert await inbox.rows("SELECT normalizer, sealed FROM statesvc.normalized") == [
        ("go@1", b"\x00\x01\x02")
    ]


async def _suspect(inbox: Any) -> Any:
    """Make a message that cost a worker its life, in the hands of the next."""
    await inbox.put("ups")
    await inbox.claim(worker="dead")
    await inbox.expire()
    (rescued,) = await inbox.claim(worker="rescuer")
    assert rescued.rescued_from == "dead"
    return rescued


@pytest.mark.parametrize("given_back", ["release", "retry", "decline"])
async def test_a_message_that_cost_a_worker_its_life_stays_alone_however_it_is_given_back(
    inbox: Any, given_back: str
) -> None:
    suspect = await _suspect(inbox)
    match given_back:
        case "release":
            assert await inbox.release(suspect.token) == 1
        case "decline":
            assert await inbox.decline(suspect.token, suspect.message_id) == 1
        case _:
            assert await inbox.retry(suspect.token, suspect.message_id, seconds=0) == 1
    await inbox.put("ups", "fedex")
    (alone,) = await inbox.claim()
    assert (alone.message_id, alone.rescued_from) == (suspect.message_id, None)
    assert len(await inbox.claim()) == 2


async def test_a_worker_may_serve_the_lanes_first_and_rescue_when_they_are_empty(
    inbox: Any,
) -> None:
    await inbox.put("ups")
    await inbox.claim(worker="dead")
    await inbox.expire()
    await inbox.put("ups", "fedex")
    assert len(await inbox.claim(rescue_first=False)) == 2
    (rescued,) = await inbox.claim(rescue_first=False)
    assert (rescued.attempts, rescued.rescued_from) == (2, "dead")


async def test_a_lease_that_ended_while_its_carrier_was_held_is_found_at_the_release_without_a_sweep(
    inbox: Any,
) -> None:
    await inbox.put("ups")
    (held,) = await inbox.claim()
    await inbox.hold("ups")
    for _ in range(5):
        await inbox.expire()
        assert await inbox.claim() == []
    await inbox.hold("ups", on=False)
    assert [m.message_id for m in await inbox.claim()] == [held.message_id]
    await inbox.expire()
    await inbox.hold("*")
    await inbox.advance(300)
    assert await inbox.claim(sweep=True) == []
    await inbox.hold("*", on=False)
    assert [m.message_id for m in await inbox.claim()] == [held.message_id]


async def test_attempts_that_do_not_settle_are_kept_with_who_when_and_why(inbox: Any) -> None:
    suspect = await _suspect(inbox)
    await inbox.retry(suspect.token, suspect.message_id, seconds=0)
    (again,) = await inbox.claim(worker="third")
    assert await inbox.bury(again.token, suspect.message_id) == 1
    assert await inbox.attempts() == [
        (suspect.message_id, 1, "lease_ended", "dead", None),
        (suspect.message_id, 2, "retried", "rescuer", "Lost"),
        (suspect.message_id, 3, "buried", "third", "unreadable"),
    ]
    times = await inbox.rows(
        "SELECT extract(epoch FROM ended_at - started_at)::float8 FROM statesvc.message_attempt"
        " ORDER BY attempt_id"
    )
    assert times[0] == (30.0,), "an ended lease ended when it ended, not when somebody found it"
    assert all(0 <= seconds < 5 for (seconds,) in times[1:])


async def test_what_settles_or_is_given_back_untouched_leaves_no_attempt(inbox: Any) -> None:
    ((read, _), *_) = await inbox.put("ups", "ups", "ups")
    claimed = await inbox.claim(stage="raw")
    await inbox.hand_over(claimed[0].token, read)
    await inbox.decline(claimed[0].token, claimed[1].message_id)
    await inbox.release(claimed[0].token)
    assert await inbox.attempts() == []


async def test_five_deaths_are_five_attempts_and_one_dead_letter(inbox: Any) -> None:
    ((killer, _),) = await inbox.put("ups")
    for _ in range(5):
        await inbox.claim()
        await inbox.expire()
    assert await inbox.claim() == []
    assert [(m, attempt, outcome) for m, attempt, outcome, *_ in await inbox.attempts()] == [
        (killer, attempt, "lease_ended") for attempt in range(1, 6)
    ]
    assert await inbox.dead() == [(killer, "worker_died", 5)]

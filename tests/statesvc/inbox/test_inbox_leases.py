"""Leases: their end, their fencing, what is charged, and who is claimed alone."""

from typing import Any
from uuid import uuid4


async def test_a_lease_that_ran_out_is_claimed_by_another_and_the_old_token_does_nothing_any_more(inbox: Any) -> None:
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


async def test_an_extended_lease_is_not_claimed_at_its_first_end(inbox: Any) -> None:
    await inbox.put("ups")
    (held,) = await inbox.claim()
    await inbox.advance(20)
    assert await inbox.extend(held.token) == 1
    await inbox.advance(20)
    assert await inbox.claim(sweep=True) == []
    await inbox.advance(11)
    assert len(await inbox.claim()) == 1


async def test_attempts_are_counted_at_the_claim_so_that_a_worker_which_dies_is_charged(inbox: Any) -> None:
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
    kept = await inbox.rows("SELECT kind, cause, detail, carrier_id, message_id, attempts, worker, sealed_key FROM statesvc.dead_letter")
    assert kept == [("message", "unreadable", "why", "ups", message_id, 1, "worker-7", b"key")]
    assert await inbox.value("SELECT count(*) FROM statesvc.inbox") == 0


async def test_what_a_foreign_worker_read_waits_for_a_worker_that_appends(inbox: Any) -> None:
    ((message_id, _),) = await inbox.put("ups")
    (held,) = await inbox.claim(stage="raw")
    assert await inbox.hand_over(held.token, message_id, uuid4()) == 1
    assert await inbox.claim(stage="raw") == []
    (normalized,) = await inbox.claim(stage="any")
    assert (normalized.message_id, normalized.stage, normalized.attempts) == (message_id, "normalized", 1)
    assert await inbox.hand_over(normalized.token, message_id) == 0, "it was read once"
    assert await inbox.rows("SELECT normalizer, sealed FROM statesvc.normalized") == [("go@1", b"\x00\x01\x02")]

"""Leases: their end, their fencing, what is charged, who is claimed alone, and what is buried."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import psycopg
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
    assert await inbox.postpone(old.token, old.message_id) == 0
    assert await inbox.decline(old.token, old.message_id) == 0
    assert await inbox.release(old.token) == 0
    assert await inbox.hand_over(old.token, old.message_id) == 0
    assert await inbox.rows("SELECT * FROM statesvc.inbox") == before
    assert await inbox.dead() == []


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


async def _suspect(inbox: Any) -> Any:
    """Make a message that cost a worker its life, in the hands of the next."""
    await inbox.put("ups")
    await inbox.claim(worker="dead")
    await inbox.expire()
    (rescued,) = await inbox.claim(worker="rescuer")
    assert rescued.rescued_from == "dead"
    return rescued


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


async def _leases_end(inbox: Any, times: int) -> None:
    for _ in range(times):
        await inbox.claim(1)
        await inbox.advance(31)


async def test_five_deaths_bury_a_message_and_the_claim_reports_it(inbox: Any) -> None:
    ((message_id, _),) = await inbox.put("ups")
    await _leases_end(inbox, 5)
    query = (
        "SELECT message_id, carrier_id, token, buried_for FROM statesvc.claim('w', 64, '30 s',"
        " 'any', p_report_burials => true)"
    )
    assert await inbox.rows(query) == [(message_id, "ups", None, "worker_died")]
    assert [row for row in await inbox.rows(query) if row[0] is not None] == []
    assert [row[:3] for row in await inbox.attempts()] == [
        (message_id, attempt, "lease_ended") for attempt in range(1, 6)
    ]
    assert await inbox.dead() == [(message_id, "worker_died", 5)]


async def test_the_room_that_a_burial_makes_is_given_by_the_same_claim(inbox: Any) -> None:
    await inbox.put("bounded")
    await _leases_end(inbox, 5)
    await inbox.put("bounded")
    await inbox.set_quota("bounded", in_flight_max=1)
    assert len(await inbox.claim()) == 1


async def test_the_budget_of_transient_failures_holds_for_every_client(inbox: Any) -> None:
    ((message_id, _),) = await inbox.put("ups")
    for _ in range(20):
        (message,) = await inbox.claim()
        assert await inbox.retry(message.token, message_id, seconds=0) == 1
    (message,) = await inbox.claim()
    assert (message.attempts, message.retries) == (21, 20)
    assert await inbox.retry(message.token, message_id, seconds=0) == 1
    assert await inbox.claim() == []
    assert await inbox.rows("SELECT cause, detail, attempts FROM statesvc.dead_letter") == [
        ("attempts_exhausted", "given back 20 times, the last time for Lost", 21)
    ]
    assert await inbox.rows(
        "SELECT outcome, count(*) FROM statesvc.message_attempt GROUP BY 1 ORDER BY 1"
    ) == [
        ("buried", 1),
        ("retried", 20),
    ]


async def test_a_burial_whose_id_is_taken_leaves_the_message_in_the_inbox(inbox: Any) -> None:
    await inbox.put("ups", "ups")
    first, second = await inbox.claim(2)
    await inbox.bury(first.token, first.message_id)
    await inbox.as_owner("SELECT setval('statesvc.dead_letter_dead_letter_id_seq', 1, false)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        await inbox.bury(second.token, second.message_id)
    assert await inbox.rows("SELECT message_id FROM statesvc.inbox") == [(second.message_id,)]
    await inbox.bury(second.token, second.message_id)
    assert await inbox.count("SELECT count(*) FROM statesvc.dead_letter") == 2

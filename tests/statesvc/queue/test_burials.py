"""Reports of a claim about the messages that it buried, and the budget of transient failures."""

from typing import Any

import psycopg
import pytest


async def _leases_end(inbox: Any, times: int) -> None:
    for _ in range(times):
        await inbox.claim(1)
        await inbox.advance(31)


async def _bound(inbox: Any, in_flight_max: int) -> None:
    await inbox.as_owner(
        "INSERT INTO statesvc.carrier_quota (carrier_id, in_flight_max, changed_at, changed_by)"
        f" VALUES ('bounded', {in_flight_max}, now(), 'test')"
    )


async def test_a_claim_reports_what_it_buried(inbox: Any) -> None:
    ((message_id, _),) = await inbox.put("ups")
    await _leases_end(inbox, 5)
    query = (
        "SELECT message_id, carrier_id, token, buried_for FROM statesvc.claim('w', 64, '30 s',"
        " 'any', p_report_burials => true)"
    )
    assert await inbox.rows(query) == [(message_id, "ups", None, "worker_died")]
    assert [row for row in await inbox.rows(query) if row[0] is not None] == []


async def test_without_being_asked_it_answers_messages_alone(inbox: Any) -> None:
    await inbox.put("ups")
    await _leases_end(inbox, 5)
    assert await inbox.claim() == []
    assert (
        await inbox.count("SELECT count(*) FROM statesvc.dead_letter WHERE cause = 'worker_died'")
        == 1
    )


async def test_a_message_without_a_body_is_buried_and_reported(inbox: Any) -> None:
    ((message_id, _),) = await inbox.put("ups")
    await inbox.as_owner("DELETE FROM statesvc.body")
    query = (
        "SELECT message_id, buried_for FROM statesvc.claim('w', 64, '30 s', 'any', p_report_burials"
        " => true)"
    )
    assert await inbox.rows(query) == [(message_id, "body_missing")]


async def test_the_room_that_a_burial_makes_is_given_by_the_same_claim(inbox: Any) -> None:
    await inbox.put("bounded")
    await _leases_end(inbox, 5)
    await inbox.put("bounded")
    await _bound(inbox, 1)
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

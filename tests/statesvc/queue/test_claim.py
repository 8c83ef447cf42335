"""Fairness and bounds of a claim, and how groups of messages are stored."""

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

MIB = 1 << 20


async def test_a_claim_takes_the_oldest_first_up_to_its_limit(inbox: Any) -> None:
    put = [message_id for _ in range(5) for message_id, _ in await inbox.put("ups")]
    assert [m.message_id for m in await inbox.claim(3)] == put[:3]
    assert [m.message_id for m in await inbox.claim(3)] == put[3:]
    assert await inbox.claim(3) == []


async def test_a_quiet_carrier_is_served_beside_a_flood_and_the_flood_takes_what_is_left_over(
    inbox: Any,
) -> None:
    await inbox.put(*["flood"] * 500)
    await inbox.put("quiet", "quiet", "other")
    assert Counter(m.carrier_id for m in await inbox.claim(64)) == {
        "flood": 61,
        "quiet": 2,
        "other": 1,
    }
    assert Counter(m.carrier_id for m in await inbox.claim(64)) == {"flood": 64}


async def test_a_claim_stops_at_its_bound_in_bytes_but_takes_at_least_one_message(
    inbox: Any,
) -> None:
    await inbox.put(*["ups"] * 5, body_bytes=MIB)
    assert len(await inbox.claim(64, bytes_max=3 * MIB)) == 3
    assert len(await inbox.claim(64, bytes_max=10)) == 1
    assert len(await inbox.claim(64, bytes_max=10)) == 1


async def test_the_bound_in_bytes_leaves_every_carrier_its_share(inbox: Any) -> None:
    await inbox.put(*["heavy"] * 20, body_bytes=MIB)
    await inbox.put("quiet")
    assert Counter(m.carrier_id for m in await inbox.claim(64, bytes_max=4 * MIB)) == {
        "heavy": 3,
        "quiet": 1,
    }


async def test_more_carriers_than_places_are_all_served_in_their_turn_however_old_the_backlog(
    inbox: Any,
) -> None:
    carriers = [f"c{n}" for n in range(12)]
    await inbox.put(*carriers)
    await inbox.advance(60)
    assert sorted([m.carrier_id for _ in range(6) for m in await inbox.claim(2)]) == sorted(
        carriers
    )


async def test_a_held_carrier_is_left_out_from_the_next_claim_on_and_back_after_its_release(
    inbox: Any,
) -> None:
    await inbox.put("ups", "fedex")
    await inbox.hold("ups")
    assert [m.carrier_id for m in await inbox.claim()] == ["fedex"]
    await inbox.hold("*")
    await inbox.put("fedex")
    assert await inbox.claim(sweep=True) == []
    await inbox.hold("*", on=False)
    assert [m.carrier_id for m in await inbox.claim()] == ["fedex"]
    await inbox.advance(3600)
    await inbox.hold("ups", on=False)
    assert "ups" in [m.carrier_id for _ in range(3) for m in await inbox.claim()]


async def test_a_message_below_the_low_water_mark_is_found_by_the_sweep(inbox: Any) -> None:
    await inbox.put("ups")
    await inbox.claim()
    await inbox.advance(5)
    ((late, _),) = await inbox.put("ups")
    await inbox.connection.execute(
        "UPDATE statesvc.inbox SET available_at = available_at - interval '1 hour' WHERE token IS"
        " NULL"
    )
    assert await inbox.claim() == []
    assert [m.message_id for m in await inbox.claim(sweep=True)] == [late]


async def test_a_mark_never_passes_a_message_that_still_waits(inbox: Any) -> None:
    put = await inbox.put(*["ups"] * 6)
    found = []
    for _ in range(6):
        await inbox.advance(25)
        found += await inbox.claim(1, lease=3600)
    assert {m.message_id for m in found} == {message_id for message_id, _ in put}


async def test_next_due_is_the_end_of_the_earliest_lease_or_backoff_of_a_carrier_that_is_not_held(
    inbox: Any,
) -> None:
    due = "SELECT extract(epoch FROM statesvc.next_due() - statesvc.clock())::float8"
    assert await inbox.value(due) is None
    await inbox.put("ups", "fedex")
    assert await inbox.value(due) is None, "what is ready now is no reason to wait"
    claimed = await inbox.claim(lease=100)
    assert 99 < await inbox.value(due) <= 100
    ups = next(m for m in claimed if m.carrier_id == "ups")
    await inbox.retry(ups.token, ups.message_id, seconds=20)
    assert 19 < await inbox.value(due) <= 20
    await inbox.hold("ups")
    assert 98 < await inbox.value(due) <= 100


async def test_a_foreign_claim_does_not_hide_what_waits_to_be_appended(inbox: Any) -> None:
    ((read, _),) = await inbox.put("ups")
    (held,) = await inbox.claim(stage="raw")
    await inbox.hand_over(held.token, read)
    await inbox.advance(60)
    assert await inbox.claim(stage="raw") == []
    assert [m.message_id for m in await inbox.claim(stage="any")] == [read]


async def test_a_sweep_takes_the_mark_back_to_what_it_found_below(inbox: Any) -> None:
    await inbox.put("ups")
    await inbox.claim(lease=3600)
    await inbox.advance(60)
    assert await inbox.claim() == []
    await inbox.put(*["ups"] * 3)
    await inbox.connection.execute(
        "UPDATE statesvc.inbox SET available_at = available_at - interval '55 s' WHERE token IS"
        " NULL"
    )
    assert len(await inbox.claim(1, sweep=True, lease=3600)) == 1
    assert len(await inbox.claim(lease=3600)) == 2, "without another sweep"


async def test_a_body_is_found_among_the_kept_ones_and_a_message_without_any_is_a_dead_letter(
    inbox: Any,
) -> None:
    (kept, _), (lost, _), (other, _) = await inbox.put("ups", "ups", "ups")
    await inbox.as_owner(
        "INSERT INTO statesvc.body_retained SELECT * FROM statesvc.body WHERE message_id ="
        f" '{kept}'"
    )
    await inbox.as_owner(f"DELETE FROM statesvc.body WHERE message_id IN ('{kept}', '{lost}')")
    claimed = await inbox.rows(
        "SELECT message_id, sealed, headers FROM statesvc.claim('w', 9, interval '30 s')"
    )
    assert sorted(claimed) == sorted([(kept, b"body", {}), (other, b"body", {})])
    assert await inbox.dead() == [(lost, "body_missing", 1)]


DIGEST = b"0123456789abcdef"
HOURS = 3600


async def test_a_retry_in_the_same_group_and_in_a_later_one_is_answered_with_the_first_id_and_makes_no_work(
    inbox: Any,
) -> None:
    other = b"f" * 16
    first, again, different = await inbox.put("ups", "ups", "ups", digests=[DIGEST, DIGEST, other])
    assert (first[1], again, different[1]) == (False, (first[0], True), False)
    assert await inbox.put("ups", digests=[DIGEST]) == [(first[0], True)]
    assert await inbox.value("SELECT retries FROM statesvc.receipt WHERE digest = %s", DIGEST) == 2
    assert await inbox.value("SELECT count(*) FROM statesvc.inbox") == 2
    assert await inbox.value("SELECT count(*) FROM statesvc.body") == 2


async def test_a_retry_of_a_message_that_was_claimed_or_settled_makes_no_work_either(
    inbox: Any,
) -> None:
    ((message_id, _),) = await inbox.put("ups", digests=[DIGEST])
    assert len(await inbox.claim()) == 1
    assert await inbox.put("ups", digests=[DIGEST]) == [(message_id, True)]
    await inbox.connection.execute("DELETE FROM statesvc.inbox")
    assert await inbox.put("ups", digests=[DIGEST]) == [(message_id, True)]
    assert await inbox.claim() == []


async def test_the_same_bytes_after_48_hours_are_a_new_message(inbox: Any) -> None:
    ((message_id, _),) = await inbox.put("ups", digests=[DIGEST])
    await inbox.advance(47.9 * HOURS)
    assert await inbox.put("ups", digests=[DIGEST]) == [(message_id, True)]
    await inbox.advance(0.2 * HOURS)
    (fresh, again) = await inbox.put("ups", "ups", digests=[DIGEST, DIGEST])
    assert not fresh[1]
    assert fresh[0] != message_id
    assert again == (fresh[0], True)
    assert await inbox.value("SELECT retries FROM statesvc.receipt") == 1
    assert await inbox.value("SELECT count(*) FROM statesvc.inbox") == 2


async def test_groups_with_the_same_retries_in_opposite_order_agree_on_one_first_message(
    database: Any, inbox: Any
) -> None:
    digests = [bytes([n]) * 16 for n in range(20)]

    async def put(order: list[bytes]) -> list[tuple[UUID, bool]]:
        async with await AsyncConnection.connect(
            database.service_dsn, autocommit=True
        ) as connection:
            mine = type(inbox)(connection, database.owner_dsn, database)
            answers: list[tuple[UUID, bool]] = await mine.put(*["ups"] * len(order), digests=order)
            return answers

    forward, backward = await asyncio.gather(put(digests), put(digests[::-1]))
    assert [message_id for message_id, _ in forward] == [
        message_id for message_id, _ in reversed(backward)
    ]
    assert sum(not duplicate for _, duplicate in [*forward, *backward]) == len(digests)
    assert await inbox.value("SELECT count(*) FROM statesvc.inbox") == len(digests)

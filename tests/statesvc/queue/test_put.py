"""Storing groups of messages, and recognising byte-identical retries."""

import asyncio
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

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

"""Reconciler's counts of messages and notifications that were lost on purpose, and
of those that were not.
"""

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import AsyncConnection

from statesvc.bodies.sealed_message import message_id
from statesvc.database.pool import Pool
from statesvc.health.reconciler import read_promises, reconcile
from statesvc.ingress.ack_counts import AckCounts
from tests.world.database import Database


@pytest.fixture
async def minutes_pass(database: Database) -> Callable[[int], Awaitable[None]]:
    return lambda minutes: database.clock.advance(60 * minutes)


@pytest.fixture
async def ids(database: Database, owner: AsyncConnection[Any]) -> list[UUID]:
    """Return ids of messages of UPS, of this minute."""
    await owner.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('ups')")
    second = int((await database.clock.now()).timestamp()) // 60 * 60 + 1
    return [message_id(second * 1000 + place, bytes(10)) for place in range(6)]


async def _acknowledge(pool: Pool, ids: Iterable[UUID]) -> None:
    counts = AckCounts(pool, process="test")
    for one in ids:
        counts.accepted("ups", one)
    await counts.flush()


async def _put(owner: AsyncConnection[Any], one: UUID) -> None:
    await owner.execute(
        "INSERT INTO statesvc.body (message_id, received_at, carrier_id, commitment, headers,"
        " sealed) VALUES (%s, statesvc.clock(), 'ups', %s, '{}', 'x')",
        (one, bytes(32)),
    )
    await owner.execute(
        "INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id,"
        " sealed_key) VALUES (%s, statesvc.clock(), statesvc.clock(), 1, 'ups', '')",
        (one,),
    )


async def _settled(owner: AsyncConnection[Any], one: UUID) -> None:
    await owner.execute("DELETE FROM statesvc.inbox WHERE message_id = %s", (one,))
    await owner.execute(
        "INSERT INTO statesvc.message (message_id, received_at, settled_at, attempts, events,"
        " carrier_id, outcome, normalizer, worker, shipments) SELECT b.message_id, b.received_at,"
        " b.received_at, 1, 0, 'ups', 'empty', 'ups@1', 'w', '{}' FROM statesvc.body b WHERE"
        " b.message_id = %s",
        (one,),
    )


async def _promise(connection: AsyncConnection[Any], name: str) -> tuple[int, int, int]:
    (found,) = [promise for promise in await read_promises(connection) if promise.promise == name]
    return found.expected, found.waiting, found.missing


async def test_an_acknowledged_message_waits_is_settled_or_is_missing(
    pool: Pool, owner: AsyncConnection[Any], ids: list[UUID], minutes_pass: Any
) -> None:
    waiting, settled, buried, lost, never_stored, other = ids
    for one in (waiting, settled, buried, lost, other):
        await _put(owner, one)
    await _settled(owner, settled)
    await _settled(owner, other)
    await owner.execute("DELETE FROM statesvc.inbox WHERE message_id = %s", (buried,))
    await owner.execute(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, message_id)"
        " VALUES ('message', 'unreadable', 'ups', statesvc.clock(), %s)",
        (buried,),
    )
    await owner.execute("DELETE FROM statesvc.inbox WHERE message_id = %s", (lost,))
    await _acknowledge(pool, ids)
    async with pool.connection() as connection:
        assert await reconcile(connection) == [], "the minute is not over for long enough"
        await minutes_pass(4)
        (found,) = await reconcile(connection)
        assert (found.expected, found.waiting, found.missing) == (6, 1, 2), (
            f"{lost} and {never_stored} are nowhere"
        )
        assert await _promise(connection, "settled") == (6, 1, 2)
        # once it is settled the minute is closed, but for what is missing
        await _settled(owner, waiting)
        await _put(owner, never_stored)
        await _settled(owner, never_stored)
        await minutes_pass(10)
        await reconcile(connection)
        assert await _promise(connection, "settled") == (6, 0, 1)


async def test_messages_stored_while_the_databases_clock_was_ahead_are_not_missing(
    pool: Pool, owner: AsyncConnection[Any], ids: list[UUID], minutes_pass: Any
) -> None:
    _, settled, lost, *_ = ids
    await minutes_pass(180)
    for one in ids[:3]:
        await _put(owner, one)
    await _settled(owner, settled)
    await owner.execute("DELETE FROM statesvc.inbox WHERE message_id = %s", (lost,))
    await _acknowledge(pool, ids[:3])
    await minutes_pass(-180 + 4)
    async with pool.connection() as connection:
        (counted,) = await reconcile(connection)
    assert (counted.expected, counted.waiting, counted.missing) == (3, 1, 1)


async def test_a_notification_that_is_due_waits_has_ended_or_is_missing(
    pool: Pool, owner: AsyncConnection[Any], minutes_pass: Any
) -> None:
    waiting, delivered, covered, deleted, lost, no_row = (UUID(int=place) for place in range(1, 7))
    shipment, batch = (
        UUID(int=99),
        await _fan_out(owner, UUID(int=99), [waiting, delivered, covered, deleted, lost, no_row]),
    )
    for one in (waiting, delivered, covered, deleted, lost):
        await owner.execute(
            "INSERT INTO statesvc.notification (shipment_id, sequence, subscription_id, created_at,"
            " occurred_at, webhook_id, type, carrier_id, tracking_number, from_status, to_status)"
            " VALUES (%s, 1, %s, statesvc.clock(), statesvc.clock(), %s, 'shipment.updated', 'ups',"
            " 'N', 'unknown', 'unknown')",
            (shipment, one, str(one)),
        )
    await _queue(owner, waiting, shipment, 1)
    await _queue(owner, covered, shipment, 3)
    await owner.execute(
        "INSERT INTO statesvc.notification_gap VALUES (%s, 3, %s, statesvc.clock(), 1, 1, 2,"
        " ARRAY[1])",
        (shipment, covered),
    )
    for one in (delivered, no_row):
        await _end(owner, shipment, one, batch)
    await owner.execute(
        "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url,"
        " sealed_secrets, deleted_at) VALUES (%s, statesvc.clock(), 'x', 'x', 'https://x', '{}',"
        " statesvc.clock())",
        (deleted,),
    )
    async with pool.connection() as connection:
        assert await reconcile(connection) == [], "it was sealed just now"
        await minutes_pass(4)
        (found,) = await reconcile(connection)
        assert (found.expected, found.waiting, found.missing) == (6, 2, 2), (
            "one is nowhere, one has an end and no row"
        )
        await owner.execute("DELETE FROM statesvc.outbox")
        await _end(owner, shipment, waiting, batch)
        await minutes_pass(10)
        await reconcile(connection)
        assert await _promise(connection, "notified") == (6, 0, 3), (
            "what covered the third is gone as well"
        )


async def _fan_out(owner: AsyncConnection[Any], shipment: UUID, subscriptions: list[UUID]) -> int:
    async with owner.transaction():
        row = await (
            await owner.execute(
                "INSERT INTO statesvc.batch (recorded_from, recorded_to, entries, leaf_hashes,"
                " writer) VALUES (statesvc.clock(), statesvc.clock(), 1, %s, 'w') RETURNING"
                " batch_id, recorded_from",
                (bytes(32),),
            )
        ).fetchone()
        assert row is not None
        await owner.execute(
            "INSERT INTO statesvc.fanout (shipment_id, sequence, recorded_at, batch_id, ordinal,"
            " subscriptions, replayed, canonical) VALUES (%s, 1, %s, %s, 0, %s, false, '{}')",
            (shipment, row[1], row[0], subscriptions),
        )
        await owner.execute(
            "INSERT INTO statesvc.sealed_batch VALUES (0, %s, %s, %s, 1, statesvc.clock())",
            (row[0], row[1], row[1]),
        )
    return int(row[0])


async def _queue(
    owner: AsyncConnection[Any], subscription: UUID, shipment: UUID, sequence: int
) -> None:
    await owner.execute(
        "INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at,"
        " created_at) VALUES (%s, %s, %s, statesvc.clock(), statesvc.clock())",
        (subscription, shipment, sequence),
    )


async def _end(owner: AsyncConnection[Any], shipment: UUID, subscription: UUID, batch: int) -> None:
    await owner.execute(
        "INSERT INTO statesvc.attempt (shipment_id, sequence, subscription_id, recorded_at,"
        " batch_id, ordinal, outcome, number, started_at, duration_ms, canonical) VALUES (%s, 1,"
        " %s, statesvc.clock(), %s, 0, 'delivered', 1, statesvc.clock(), 1, '{}')",
        (shipment, subscription, batch),
    )


async def test_a_count_that_is_written_twice_is_the_same(
    pool: Pool, owner: AsyncConnection[Any]
) -> None:
    ack_counts = AckCounts(pool, process="test")
    one = message_id(int(time.time() * 1000), bytes(10))
    ack_counts.accepted("ups", one)
    await ack_counts.flush()
    ack_counts.accepted("ups", one)
    ack_counts.duplicate("ups")
    ack_counts.refused("ups")
    await ack_counts.flush()
    await ack_counts.flush()
    rows = await (
        await owner.execute(
            "SELECT sum(accepted), sum(duplicates), sum(refused), max(last_at) IS NOT NULL FROM"
            " statesvc.ack_count"
        )
    ).fetchall()
    assert rows == [(2, 1, 1, True)]


async def test_counts_survive_a_database_that_is_away(
    pool: Pool, owner: AsyncConnection[Any]
) -> None:
    ack_counts = AckCounts(pool, process="test")
    ack_counts.accepted("ups", message_id(int(time.time() * 1000), bytes(10)))
    await owner.execute("ALTER TABLE statesvc.ack_count RENAME TO away")
    with pytest.raises(psycopg.Error):
        await ack_counts.flush()
    await owner.execute("ALTER TABLE statesvc.away RENAME TO ack_count")
    await ack_counts.flush()
    assert await (await owner.execute("SELECT accepted FROM statesvc.ack_count")).fetchall() == [
        (1,)
    ]


async def test_a_minute_of_which_a_spool_may_hold_messages_is_counted_later(
    pool: Pool, owner: AsyncConnection[Any], ids: list[UUID], minutes_pass: Any
) -> None:
    spooled, discarded, *_ = ids
    await _acknowledge(pool, ids[:2])
    await owner.execute(
        "INSERT INTO statesvc.spool (name, seen_at, held_seconds, clear_until)"
        " VALUES ('file:1', statesvc.clock(), 60, date_trunc('minute', statesvc.clock()))"
    )
    await minutes_pass(10)
    async with pool.connection() as connection:
        assert await reconcile(connection) == []
        await _put(owner, spooled)
        await owner.execute(
            "INSERT INTO statesvc.message_alias (message_id, kept_id) VALUES (%s, %s)",
            (discarded, spooled),
        )
        await owner.execute("UPDATE statesvc.spool SET clear_until = statesvc.clock()")
        (found,) = await reconcile(connection)
        assert (found.expected, found.waiting, found.missing) == (2, 1, 0)


async def test_a_spool_that_is_not_heard_of_for_a_day_hides_no_loss(
    pool: Pool, owner: AsyncConnection[Any], ids: list[UUID], minutes_pass: Any
) -> None:
    await _acknowledge(pool, ids[:1])
    await owner.execute(
        "INSERT INTO statesvc.spool (name, seen_at, held_seconds) VALUES ('file:1', statesvc.clock(), 60)"
    )
    await minutes_pass(23 * 60 + 10)
    async with pool.connection() as connection:
        (found,) = await reconcile(connection)
        assert (found.expected, found.missing) == (1, 1)

"""Messages that share a transaction do not share each other's fate."""

import asyncio
import itertools
import time
from dataclasses import replace
from typing import Any

import pytest
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.background.waiting import cancel_fully
from statesvc.bodies.sealed_message import SealedMessage, seal_message
from statesvc.database.pool import Pool, make_pool
from statesvc.database.wakeups.wakeup import INBOX
from statesvc.ingress.body_memory import SMALL_BYTES, MemoryBound
from statesvc.ingress.group_commit import GroupCommit, GroupLimits, Refusal, Stored
from tests.statesvc.ingress.conftest import LIMITS, Wakes


@pytest.fixture
def memory() -> MemoryBound:
    return MemoryBound(1_000_000)


def seal(keyring: Keyring, body: str) -> SealedMessage:
    return seal_message(keyring, "acme", body.encode(), "{}")


async def put_together(group_commit: GroupCommit, messages: list[SealedMessage]) -> list[Any]:
    """Put all before the lanes start, so that one group takes them."""
    tasks = [asyncio.create_task(group_commit.put(message)) for message in messages]
    await asyncio.sleep(0)
    await group_commit.start()
    return await asyncio.gather(*tasks)


async def count(database: Any, table: str) -> int:
    async with await AsyncConnection.connect(database.owner_dsn) as connection:
        row = await (await connection.execute(f"SELECT count(*) FROM statesvc.{table}")).fetchone()
        assert row is not None
        return int(row[0])


async def test_a_bad_row_fails_alone(
    pool: Pool, memory: MemoryBound, keyring: Keyring, database: Any
) -> None:
    messages = [seal(keyring, str(number)) for number in range(9)]
    messages[4] = replace(messages[4], commitment=b"too short")
    messages[7] = replace(messages[7], headers="no json")
    group_commit = GroupCommit(pool, memory=memory, limits=GroupLimits(lanes=1))
    outcomes = await put_together(group_commit, messages)
    assert [
        number for number, outcome in enumerate(outcomes) if outcome is Refusal.ROW_REFUSED
    ] == [4, 7]
    assert sum(isinstance(outcome, Stored) for outcome in outcomes) == 7
    assert await count(database, "inbox") == 7
    assert memory.bytes_taken == 0
    await group_commit.stop(grace_seconds=1)


async def test_groups_are_bounded_and_lose_nothing(
    pool: Pool, memory: MemoryBound, keyring: Keyring, database: Any
) -> None:
    limits = GroupLimits(lanes=2, group_rows_max=3, group_bytes_max=10)
    group_commit = GroupCommit(pool, memory=memory, limits=limits)
    outcomes = await put_together(
        group_commit, [seal(keyring, f"{number:06}" * (1 + number % 3)) for number in range(40)]
    )
    assert all(isinstance(outcome, Stored) and not outcome.duplicate for outcome in outcomes)
    assert await count(database, "inbox") == 40
    await group_commit.stop(grace_seconds=1)


async def test_small_bodies_share_no_group_with_large_ones(
    pool: Pool, memory: MemoryBound, keyring: Keyring, database: Any
) -> None:
    group_commit = GroupCommit(
        pool, memory=memory, limits=GroupLimits(lanes=1, large_group_bytes_max=2 * SMALL_BYTES)
    )
    bodies = [f"{number}" * (SMALL_BYTES + 1 if number % 2 else 1) for number in range(8)]
    outcomes = await put_together(group_commit, [seal(keyring, body) for body in bodies])
    assert all(isinstance(outcome, Stored) for outcome in outcomes)
    await group_commit.stop(grace_seconds=1)
    async with await AsyncConnection.connect(database.owner_dsn) as connection:
        cursor = await connection.execute(
            "SELECT count(*), bool_or(body_bytes > %s), bool_and(body_bytes > %s) FROM"
            " statesvc.inbox GROUP BY xmin::text",
            (SMALL_BYTES, SMALL_BYTES),
        )
        assert sorted(await cursor.fetchall()) == [*[(1, True, True)] * 4, (4, False, False)]


async def test_small_bodies_do_not_wait_for_large_ones(
    pool: Pool, memory: MemoryBound, keyring: Keyring
) -> None:
    group_commit = GroupCommit(
        pool, memory=memory, limits=GroupLimits(lanes=1, large_group_bytes_max=1)
    )
    await group_commit.start()
    order: list[str] = []

    async def put(body: str) -> None:
        await group_commit.put(seal(keyring, body))
        order.append(body[0])

    await asyncio.gather(
        *(put(f"{number}" * (SMALL_BYTES + 1)) for number in range(5)), put("small")
    )
    assert order.index("s") < 4
    await group_commit.stop(grace_seconds=1)


async def test_the_lane_of_large_bodies_rests_while_small_ones_come(
    pool: Pool, memory: MemoryBound, keyring: Keyring
) -> None:
    # a rest that outlasts the deadline of what waits for its end
    limits = GroupLimits(
        lanes=1, large_rest=1e9, large_rest_seconds_max=3600, large_deadline_seconds=1
    )
    group_commit = GroupCommit(pool, memory=memory, limits=limits)
    await group_commit.start()
    for number in range(3):
        assert isinstance(
            await group_commit.put(seal(keyring, f"{number}" * (SMALL_BYTES + 1))), Stored
        ), "alone it goes on at once"

    async def small_ones() -> None:
        for number in itertools.count():
            await group_commit.put(seal(keyring, f"small {number}"))

    coming = asyncio.create_task(small_ones())
    async with asyncio.timeout(10):
        for number in itertools.count(3):
            if (
                await group_commit.put(seal(keyring, f"{number}," * (SMALL_BYTES // 2 + 1)))
                is Refusal.TOO_SLOW
            ):
                break
    await cancel_fully(coming)
    assert isinstance(await group_commit.put(seal(keyring, "small")), Stored)
    await group_commit.stop(grace_seconds=0)


async def test_a_line_of_large_bodies_is_no_sign_that_the_database_is_away(
    pool: Pool, memory: MemoryBound, keyring: Keyring
) -> None:
    limits = GroupLimits(lanes=1, large_deadline_seconds=0)
    group_commit = GroupCommit(pool, memory=memory, limits=limits)
    await group_commit.start()
    assert await group_commit.put(seal(keyring, "L" * (SMALL_BYTES + 1))) is Refusal.TOO_SLOW
    assert isinstance(await group_commit.put(seal(keyring, "small")), Stored)
    await group_commit.stop(grace_seconds=1)


async def test_whoever_hangs_up_cancels_nobody(
    pool: Pool, memory: MemoryBound, keyring: Keyring, database: Any
) -> None:
    group_commit = GroupCommit(pool, memory=memory, limits=GroupLimits(lanes=1))
    await group_commit.start()
    async with await AsyncConnection.connect(database.owner_dsn) as owner:
        await owner.execute("LOCK TABLE statesvc.receipt")
        tasks = [
            asyncio.create_task(group_commit.put(seal(keyring, body)))
            for body in ("first", "second", "third")
        ]
        await asyncio.sleep(0.05)
        tasks[0].cancel()
        tasks[1].cancel()
        await asyncio.sleep(0.05)
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [
        asyncio.CancelledError,
        asyncio.CancelledError,
        Stored,
    ]
    await group_commit.stop(grace_seconds=1)
    assert await count(database, "inbox") == 3
    assert memory.bytes_taken == 0


async def test_a_further_lane_opens_only_for_a_group_worth_it(
    memory: MemoryBound, keyring: Keyring, database: Any
) -> None:
    patient = replace(LIMITS, acquire_seconds=30, statement_seconds=30, lock_seconds=30)
    limits = GroupLimits(lanes=3, further_lane_rows_min=4, deadline_seconds=30)
    async with (
        make_pool(database.service_dsn, name="test ingress", limits=patient) as pool,
        await AsyncConnection.connect(database.owner_dsn, autocommit=True) as watcher,
        await AsyncConnection.connect(database.owner_dsn) as owner,
    ):

        async def lanes_in_use(at_least: int) -> int:
            """Count those that wait for the table: the pool's own figures count a
            connection that it merely opens.
            """
            async with asyncio.timeout(30):
                while True:
                    cursor = await watcher.execute(
                        "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND relation ="
                        " 'statesvc.receipt'::regclass"
                    )
                    waiting = int((await cursor.fetchall())[0][0])
                    if waiting >= at_least:
                        return waiting
                    await asyncio.sleep(0.01)

        async def more(number: int) -> None:
            tasks.extend(
                asyncio.create_task(group_commit.put(seal(keyring, f"{len(tasks)} {item}")))
                for item in range(number)
            )
            await asyncio.sleep(0.05)

        group_commit = GroupCommit(pool, memory=memory, limits=limits)
        await group_commit.start()
        assert isinstance(await group_commit.put(seal(keyring, "makes the carrier's lane")), Stored)
        tasks: list[asyncio.Task[Any]] = []
        await owner.execute("LOCK TABLE statesvc.receipt")
        await more(2)
        assert await lanes_in_use(at_least=1) == 1
        await more(3)
        assert await lanes_in_use(at_least=1) == 1
        await more(1)
        assert await lanes_in_use(at_least=2) == 2
        await owner.rollback()
        assert all(isinstance(outcome, Stored) for outcome in await asyncio.gather(*tasks))
        cursor = await watcher.execute(
            "SELECT count(*) FROM statesvc.inbox GROUP BY xmin::text ORDER BY 1"
        )
        assert await cursor.fetchall() == [(1,), (2,), (4,)], "the three waited for the fourth"
        await group_commit.stop(grace_seconds=1)


async def test_a_locked_table_is_given_up_by_the_statement_timeout(
    pool: Pool, memory: MemoryBound, keyring: Keyring, database: Any
) -> None:
    group_commit = GroupCommit(pool, memory=memory)
    await group_commit.start()
    async with await AsyncConnection.connect(database.owner_dsn) as owner:
        await owner.execute("LOCK TABLE statesvc.receipt")
        started = time.monotonic()
        assert await group_commit.put(seal(keyring, "a")) is Refusal.NOT_STORED
        assert time.monotonic() - started < 1.5
    assert isinstance(await group_commit.put(seal(keyring, "a")), Stored)
    await group_commit.stop(grace_seconds=1)


async def test_a_missing_partition_is_no_ones_row(
    pool: Pool, memory: MemoryBound, keyring: Keyring, database: Any
) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        partitions = await (
            await owner.execute(
                "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent ="
                " 'statesvc.body'::regclass"
            )
        ).fetchall()
        for (partition,) in partitions:
            await owner.execute(f"DROP TABLE {partition}")
    group_commit = GroupCommit(pool, memory=memory, limits=GroupLimits(lanes=1))
    assert (
        await put_together(group_commit, [seal(keyring, "a"), seal(keyring, "b")])
        == [Refusal.NOT_STORED] * 2
    )
    await group_commit.stop(grace_seconds=1)


async def test_stopping_stores_what_waits_and_takes_nothing_more(
    pool: Pool, memory: MemoryBound, keyring: Keyring, database: Any
) -> None:
    group_commit = GroupCommit(pool, memory=memory, limits=GroupLimits(lanes=1, group_rows_max=2))
    await GroupCommit(pool, memory=memory).stop(grace_seconds=1)
    await group_commit.start()
    tasks = [
        asyncio.create_task(group_commit.put(seal(keyring, str(number)))) for number in range(7)
    ]
    await asyncio.sleep(0)
    await group_commit.stop(grace_seconds=5)
    assert all(isinstance(outcome, Stored) for outcome in await asyncio.gather(*tasks))
    assert await group_commit.put(seal(keyring, "late")) is Refusal.STOPPING
    await group_commit.stop(grace_seconds=1)
    assert await count(database, "inbox") == 7
    assert memory.bytes_taken == 0


@pytest.mark.usefixtures("own_processes")
async def test_a_lane_wakes_the_workers_for_what_is_new(
    pool: Pool, memory: MemoryBound, keyring: Keyring
) -> None:
    wakes = Wakes()
    group_commit = GroupCommit(pool, memory=memory, waker=wakes)
    await group_commit.start()
    for body in ("a", "a", "b", "a"):
        assert isinstance(await group_commit.put(seal(keyring, body)), Stored)
    await group_commit.stop(grace_seconds=1)
    assert wakes == [INBOX, INBOX], "not for retries"

"""Messages that share a transaction do not share each other's fate."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from events.crypto.keyring import Keyring
from statesvc.background.waiting import cancel_fully
from statesvc.bodies.sealed_message import SealedMessage, seal_message
from statesvc.database.dsns import Dsns
from statesvc.database.embedded import EmbeddedServer
from statesvc.database.migrator import migrate
from statesvc.database.pool import Pool, make_pool
from statesvc.database.wakeups.wakeup import INBOX
from statesvc.ingress.body_memory import SMALL_BYTES, MemoryBound
from statesvc.ingress.group_commit import GroupCommit, GroupLimits, Refusal, Stored, put
from statesvc.queue.claim import ClaimRequest, Message, claim
from tests.statesvc.ingress.conftest import LIMITS, Wakes

TRANSACTIONS = "DISTINCT xmin::text"


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


async def count(database: Any, what: str = "*") -> int:
    async with await AsyncConnection.connect(database.owner_dsn) as connection:
        row = await (
            await connection.execute(f"SELECT count({what}) FROM statesvc.inbox")
        ).fetchone()
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
    assert await count(database) == 7
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
    assert await count(database) == await count(database, TRANSACTIONS) == 40
    await group_commit.stop(grace_seconds=1)


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
    assert await count(database) == 3
    assert memory.bytes_taken == 0


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
    pool: Pool, memory: MemoryBound, keyring: Keyring, owner: AsyncConnection[Any]
) -> None:
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
    assert (await count(database), await count(database, TRANSACTIONS)) == (7, 4)
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


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[Dsns]:
    """Run a migrated server; commits that ask for more than its own disk wait for a
    standby that there is not.
    """
    overrides = {
        "fsync": "off",
        "shared_buffers": "32MB",
        "synchronous_standby_names": "nobody",
        "synchronous_commit": "local",
    }
    server = EmbeddedServer(tmp_path / "data", overrides=overrides)
    dsns = await asyncio.to_thread(server.start)
    try:
        await migrate(dsns.owner, dsns.service)
        yield dsns
    finally:
        await asyncio.to_thread(server.stop)


async def wait_for_no_standby(dsns: Dsns) -> None:
    """Let go of whoever waits for it."""
    assert dsns.superuser is not None
    async with await AsyncConnection.connect(dsns.superuser, autocommit=True) as connection:
        await connection.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
        await connection.execute("SELECT pg_reload_conf()")


async def claim_one(dsns: Dsns, keyring: Keyring) -> list[Message]:
    """Return what a worker leases of one message, on a connection whose commits wait for the
    standby.
    """
    async with await AsyncConnection.connect(dsns.service, autocommit=True) as connection:
        await put(connection, [seal_message(keyring, "acme", b"b", "{}")])
        await connection.execute("SET synchronous_commit = on")
        async with asyncio.timeout(30):
            return (
                await claim(
                    connection,
                    ClaimRequest(worker="w", limit=1, lease_seconds=60, bytes_max=1_000_000),
                )
            ).messages


@pytest.mark.usefixtures("own_processes")
async def test_neither_a_message_nor_its_retry_is_acknowledged_before_it_is_durable(
    own_server: Dsns, keyring: Keyring
) -> None:
    assert await claim_one(own_server, keyring), "a lease need not be durable"
    dsn = make_conninfo(own_server.service, options="-c synchronous_commit=on")
    async with make_pool(dsn, name="test ingress", limits=LIMITS) as pool:
        group_commit = GroupCommit(
            pool, memory=MemoryBound(1_000_000), limits=GroupLimits(deadline_seconds=30)
        )
        await group_commit.start()
        first = asyncio.create_task(group_commit.put(seal_message(keyring, "acme", b"a", "{}")))
        await asyncio.wait({first}, timeout=0.3)
        retry = asyncio.create_task(group_commit.put(seal_message(keyring, "acme", b"a", "{}")))
        acknowledged, _ = await asyncio.wait({first, retry}, timeout=0.3)
        assert not acknowledged, "neither is durable, nor what the retry repeats"
        await wait_for_no_standby(own_server)
        outcomes = await asyncio.gather(first, retry)
        assert [isinstance(outcome, Stored) and outcome.duplicate for outcome in outcomes] == [
            False,
            True,
        ]
        await group_commit.stop(grace_seconds=5)

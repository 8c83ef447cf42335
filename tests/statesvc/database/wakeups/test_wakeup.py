"""Wake-ups over a real server: coalesced on the way out, never lost on the way in."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.database.wakeups.wakeup import INBOX, OUTBOX

pytestmark = pytest.mark.slow

INTERVAL_SECONDS = 0.1


@pytest.fixture
async def heard(database: Any) -> AsyncIterator[list[tuple[str, float]]]:
    """Collect what a plain psycopg connection hears, with the time."""
    notifications: list[tuple[str, float]] = []
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        await connection.execute(f"LISTEN {INBOX}")
        await connection.execute(f"LISTEN {OUTBOX}")

        async def hear() -> None:
            async for notification in connection.notifies():
                assert notification.payload == ""
                notifications.append((notification.channel, time.monotonic()))

        task = asyncio.create_task(hear())
        yield notifications
        task.cancel()
        await asyncio.wait([task])


async def until(condition: Any, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        await asyncio.sleep(0.005)


async def drop_backends(dsn: str, application_name: str) -> int:
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        cursor = await connection.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname ="
            " current_database() AND application_name = %s",
            (application_name,),
        )
        row = await cursor.fetchone()
        assert row is not None
        return int(row[0])


async def test_a_burst_is_one_leading_and_one_trailing_wake_up(
    database: Any, heard: list[tuple[str, float]]
) -> None:
    waker = Waker(database.service_dsn, interval_seconds=INTERVAL_SECONDS)
    await waker.start()
    for _ in range(50):
        waker.wake(INBOX)
    await until(lambda: len(heard) == 1)
    for _ in range(50):
        waker.wake(INBOX)
    await until(lambda: len(heard) == 2)
    await asyncio.sleep(2 * INTERVAL_SECONDS)
    await waker.stop()
    assert [channel for channel, _ in heard] == [INBOX, INBOX]
    assert heard[1][1] - heard[0][1] >= INTERVAL_SECONDS * 0.8


async def test_stop_sends_the_last_wish_and_is_safe_twice_and_before_start(
    database: Any, heard: list[tuple[str, float]]
) -> None:
    waker = Waker(database.service_dsn, interval_seconds=60)
    await waker.stop()
    await waker.start()
    waker.wake(INBOX)
    await until(lambda: len(heard) == 1)
    # until the waker has its answer too: what it is sending when it is stopped may come twice
    await asyncio.sleep(0.1)
    waker.wake(OUTBOX)
    await waker.stop()
    await waker.stop()
    await until(lambda: [channel for channel, _ in heard] == [INBOX, OUTBOX])


async def test_a_wish_survives_the_loss_of_the_connection(
    database: Any, heard: list[tuple[str, float]]
) -> None:
    waker = Waker(database.service_dsn, interval_seconds=0.01)
    await waker.start()
    waker.wake(INBOX)
    await until(lambda: len(heard) == 1)
    assert await drop_backends(database.service_dsn, "statesvc waker") == 1
    waker.wake(OUTBOX)
    await until(lambda: OUTBOX in [channel for channel, _ in heard])
    await waker.stop()


async def test_a_listener_sets_its_event_once_connected_and_on_each_wake_up(database: Any) -> None:
    listener = Listener(database.service_dsn, [INBOX, OUTBOX])
    await listener.stop()
    await listener.start()
    await until(lambda: listener.is_up)
    assert listener.event(INBOX).is_set()
    assert listener.event(OUTBOX).is_set()
    listener.event(INBOX).clear()
    listener.event(OUTBOX).clear()
    waker = Waker(database.service_dsn)
    await waker.start()
    waker.wake(INBOX)
    await asyncio.wait_for(listener.event(INBOX).wait(), 5)
    assert not listener.event(OUTBOX).is_set()
    await waker.stop()
    await listener.stop()
    await listener.stop()
    assert not listener.is_up


async def test_nothing_is_lost_when_the_listener_is_terminated(database: Any) -> None:
    listener = Listener(database.service_dsn, [INBOX])
    await listener.start()
    await until(lambda: listener.is_up)
    listener.event(INBOX).clear()
    assert await drop_backends(database.service_dsn, "statesvc listener") == 1
    await until(lambda: not listener.is_up)
    assert listener.event(INBOX).is_set(), "its owner must learn that it now has to sweep faster"
    listener.event(INBOX).clear()
    # announced while nobody listens: only the event that follows LISTEN can tell
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        await connection.execute("SELECT pg_notify(%s, '')", (INBOX,))
    await until(lambda: listener.is_up)
    assert listener.event(INBOX).is_set()
    await listener.stop()


async def test_a_process_that_listens_sends_over_the_same_connection(
    database: Any, heard: list[tuple[str, float]]
) -> None:
    listener = Listener(database.service_dsn, [OUTBOX], ping_seconds=0.001)
    waker = Waker(database.service_dsn, interval_seconds=0.001, over=listener)
    await waker.start()
    # asked for before there is a connection
    waker.wake(INBOX)
    await listener.start()
    await until(lambda: [channel for channel, _ in heard] == [INBOX])
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        for _ in range(200):
            listener.event(OUTBOX).clear()
            waker.wake(INBOX)
            await connection.execute("SELECT pg_notify(%s, '')", (OUTBOX,))
            await asyncio.wait_for(listener.event(OUTBOX).wait(), 2)
    assert await drop_backends(database.service_dsn, "statesvc listener") == 1
    await until(lambda: not listener.is_up)
    count = len(heard)
    waker.wake(INBOX)
    await until(lambda: len(heard) > count)
    assert listener.is_up
    assert await drop_backends(database.service_dsn, "statesvc waker") == 0, (
        "it has no connection of its own"
    )
    count = len(heard)
    waker.wake(INBOX)
    await waker.stop()
    await until(lambda: len(heard) > count)
    await listener.stop()


async def test_an_absent_server_is_tried_with_growing_delays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = 0
    connect = AsyncConnection.connect

    async def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal tries
        tries += 1
        return await connect(*args, **kwargs)

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", counted)
    absent = "host=127.0.0.1 port=1 dbname=none"
    listener = Listener(absent, [INBOX])
    waker = Waker(absent)
    await listener.start()
    await waker.start()
    waker.wake(INBOX)
    await asyncio.sleep(1)
    await listener.stop()
    await waker.stop()
    assert 4 <= tries <= 12, "two connections, each at most about five tries in the first second"


async def backend(dsn: str, application_name: str) -> int:
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        query = (
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND"
            " application_name = %s"
        )
        row = await (await connection.execute(query, (application_name,))).fetchone()
    assert row is not None
    return int(row[0])


async def test_a_server_process_that_froze_is_left_for_another(
    database: Any, heard: list[tuple[str, float]]
) -> None:
    if "TEST_DATABASE_URL" in os.environ:
        pytest.skip("that server's processes may run elsewhere")
    waker = Waker(database.service_dsn, interval_seconds=0.01)
    await waker.start()
    waker.wake(INBOX)
    await until(lambda: len(heard) == 1)
    frozen = await backend(database.service_dsn, "statesvc waker")
    os.kill(frozen, signal.SIGSTOP)
    try:
        waker.wake(OUTBOX)
        await until(lambda: OUTBOX in [channel for channel, _ in heard], seconds=20)
        await waker.stop()
    finally:
        os.kill(frozen, signal.SIGCONT)

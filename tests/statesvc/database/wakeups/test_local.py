"""Wake-ups between processes of one machine."""

import asyncio
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.local import LocalListener, LocalWaker
from statesvc.database.wakeups.waker import LONG_INTERVAL_SECONDS, Waker
from statesvc.database.wakeups.wakeup import INBOX, LOG, OUTBOX

ABSENT = "host=127.0.0.1 port=1 dbname=none"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="wake-") as name:
        yield Path(name)


async def until(condition: Any, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        await asyncio.sleep(0.005)


async def test_only_listeners_of_the_channel_are_woken(folder: Path) -> None:
    heard: list[tuple[str, str]] = []
    local_listener = LocalListener(
        folder, [INBOX], lambda channel, sender: heard.append((channel, sender))
    )
    local = LocalWaker(folder, sender="me")
    assert not local.wake(OUTBOX)
    assert local.wake(INBOX)
    await until(lambda: heard == [(INBOX, "me")])
    local_listener.close()
    assert not local.wake(INBOX)
    local.close()


async def test_of_several_workers_the_first_is_woken_and_the_next_once_it_is_gone(
    folder: Path,
) -> None:
    heard: list[str] = []
    first = LocalListener(folder, [INBOX], lambda *_: heard.append("first"))
    second = LocalListener(folder, [INBOX], lambda *_: heard.append("second"))
    local = LocalWaker(folder, sender="me")
    assert local.wake(INBOX)
    await until(lambda: heard == ["first"])
    first.close()
    assert local.wake(INBOX)
    await until(lambda: heard == ["first", "second"])
    second.close()
    local.close()


@pytest.mark.slow
async def test_the_second_worker_hears_within_a_second_when_the_first_is_frozen(
    database: Any, folder: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as frozen:
        frozen.bind(str(folder / f"{INBOX}.{0:020d}.frozen"))
        second = Listener(database.service_dsn, [INBOX], folder=folder)
        await second.start()
        await until(lambda: second.is_up)
        waker = Waker(database.service_dsn, folder=folder)
        await waker.start()
        for _ in range(3):
            second.event(INBOX).clear()
            waker.wake(INBOX)
            await asyncio.wait_for(second.event(INBOX).wait(), 1)
        await waker.stop()
        await second.stop()


@pytest.mark.slow
async def test_a_second_worker_leaves_the_first_one_its_window(database: Any, folder: Path) -> None:
    first = LocalListener(folder, [INBOX], lambda *_: None)
    second = Listener(database.service_dsn, [INBOX], first_within_seconds=0.5)
    await second.start()
    await until(lambda: second.is_up)
    second.event(INBOX).clear()
    waker = Waker(database.service_dsn, folder=folder)
    await waker.start()
    waker.wake(INBOX)
    began = time.monotonic()
    await asyncio.wait_for(second.event(INBOX).wait(), 5)
    assert time.monotonic() - began >= 0.5
    await waker.stop()
    await second.stop()
    first.close()


async def test_while_a_channel_is_paused_its_wake_ups_wait(folder: Path) -> None:
    heard: list[str] = []
    local_listener = LocalListener(
        folder, [INBOX, OUTBOX], lambda channel, _: heard.append(channel)
    )
    local = LocalWaker(folder, sender="me")
    with local_listener.paused(INBOX):
        assert local.wake(INBOX)
        assert local.wake(OUTBOX)
        await until(lambda: heard == [OUTBOX])
    assert heard == [OUTBOX, INBOX]
    local.wake(INBOX)
    await until(lambda: heard == [OUTBOX, INBOX, INBOX])
    with local_listener.paused(INBOX):
        local_listener.close()
    local.close()


async def test_the_socket_of_a_dead_process_is_removed(folder: Path) -> None:
    left = folder / f"{INBOX}.dead"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(left))
    local = LocalWaker(folder, sender="me")
    assert not local.wake(INBOX)
    assert not left.exists()
    local.close()


async def test_a_listener_whose_queue_is_full_counts_as_woken(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as frozen:
        frozen.bind(str(folder / f"{INBOX}.frozen"))
        local = LocalWaker(folder, sender="me")
        assert all(local.wake(INBOX) for _ in range(2000))
        local.close()


async def test_a_wake_up_needs_no_server_on_one_machine(folder: Path) -> None:
    listener, waker = Listener(ABSENT, [INBOX], folder=folder), Waker(ABSENT, folder=folder)
    await listener.start()
    waker.wake(INBOX)
    await asyncio.wait_for(listener.event(INBOX).wait(), 5)
    await listener.stop()
    await waker.stop()


@pytest.fixture
async def notified(database: Any) -> AsyncIterator[list[tuple[str, str, float]]]:
    """Collect channel, payload and time of what a listener elsewhere hears."""
    notifications: list[tuple[str, str, float]] = []
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        for channel in (INBOX, LOG):
            await connection.execute(f"LISTEN {channel}")

        async def hear() -> None:
            async for notification in connection.notifies():
                heard_at = time.monotonic()
                notifications.append((notification.channel, notification.payload, heard_at))

        task = asyncio.create_task(hear())
        yield notifications
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.slow
async def test_listeners_elsewhere_are_notified_less_often(
    database: Any, folder: Path, notified: list[tuple[str, str, float]]
) -> None:
    here = Listener(database.service_dsn, [INBOX], folder=folder)
    await here.start()
    await until(lambda: here.is_up)
    waker = Waker(database.service_dsn, folder=folder)
    await waker.start()
    waker.wake(INBOX)
    await until(lambda: len(notified) == 1)
    here.event(INBOX).clear()
    waker.wake(INBOX)
    await asyncio.wait_for(here.event(INBOX).wait(), 5)
    here.event(INBOX).clear()
    await until(lambda: len(notified) == 2)
    assert notified[1][2] - notified[0][2] > LONG_INTERVAL_SECONDS / 2
    assert notified[0][1]
    assert not here.event(INBOX).is_set(), (
        "it has heard this sender already, so a notification tells it nothing"
    )
    await waker.stop()
    await here.stop()


@pytest.mark.slow
async def test_a_wake_up_that_nobody_here_has_heard_waits_for_no_other(
    database: Any, notified: list[tuple[str, str, float]]
) -> None:
    waker = Waker(database.service_dsn)
    await waker.start()
    waker.wake(LOG)
    await until(lambda: len(notified) == 1)
    waker.wake(LOG)
    waker.wake(INBOX)
    await until(lambda: len(notified) == 3)
    assert notified[2][2] - notified[0][2] < LONG_INTERVAL_SECONDS
    waker.wake(LOG)
    await until(lambda: len(notified) == 4)
    assert notified[3][2] - notified[2][2] > LONG_INTERVAL_SECONDS / 2, "who seals keeps a pace"
    await waker.stop()

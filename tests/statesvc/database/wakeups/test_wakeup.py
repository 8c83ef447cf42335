"""Wake-ups over a real server: coalesced on the way out, never lost on the way in."""

import asyncio
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.local import LocalListener, LocalWaker
from statesvc.database.wakeups.waker import LONG_INTERVAL_SECONDS, Waker
from statesvc.database.wakeups.wakeup import INBOX, LOG, OUTBOX
from tests.statesvc.database.wakeups.conftest import Heard, Start
from tests.world.lone_waker import LoneWaker
from tests.world.waiting import until

pytestmark = pytest.mark.slow

INTERVAL_SECONDS = 0.1


def channels(heard: list[Heard]) -> list[str]:
    return [one.channel for one in heard]


async def backends(
    service: AsyncConnection[Any], application_name: str, *, drop: bool = False
) -> list[int]:
    """Return the processes of the server behind these connections; some end them."""
    cursor = await service.execute(
        "SELECT pid, %s AND pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
        " current_database() AND application_name = %s",
        (drop, application_name),
    )
    return [pid for pid, _ in await cursor.fetchall()]


async def test_a_burst_is_one_leading_and_one_trailing_wake_up(
    database: Any, heard: list[Heard], start: Start
) -> None:
    waker = await start(LoneWaker(database.service_dsn, interval_seconds=INTERVAL_SECONDS))
    for count in (1, 2):
        for _ in range(50):
            waker.wake(INBOX)
        await until(lambda count=count: len(heard) == count)
    await asyncio.sleep(2 * INTERVAL_SECONDS)
    assert [(one.channel, one.payload) for one in heard] == [(INBOX, "")] * 2
    assert heard[1].at - heard[0].at >= INTERVAL_SECONDS * 0.8


async def test_stop_sends_the_last_wish_and_is_safe_twice_and_before_start(
    database: Any, heard: list[Heard], start: Start
) -> None:
    waker = LoneWaker(database.service_dsn, interval_seconds=60)
    await waker.stop()
    await start(waker)
    waker.wake(INBOX)
    await until(lambda: len(heard) == 1)
    # until the waker has its answer too: what it is sending when it is stopped may come twice
    await asyncio.sleep(0.1)
    waker.wake(OUTBOX)
    await waker.stop()
    await until(lambda: channels(heard) == [INBOX, OUTBOX])


async def test_a_wish_survives_the_loss_of_the_connection(
    database: Any, service: AsyncConnection[Any], heard: list[Heard], start: Start
) -> None:
    waker = await start(LoneWaker(database.service_dsn, interval_seconds=0.01))
    waker.wake(INBOX)
    await until(lambda: len(heard) == 1)
    assert len(await backends(service, "statesvc listener", drop=True)) == 1
    waker.wake(OUTBOX)
    await until(lambda: OUTBOX in channels(heard))


async def test_a_listener_sets_its_event_once_connected_and_on_each_wake_up(
    database: Any, start: Start
) -> None:
    listener = Listener(database.service_dsn, [INBOX, OUTBOX])
    await listener.stop()
    await start(listener)
    for channel in (INBOX, OUTBOX):
        assert listener.event(channel).is_set()
        listener.event(channel).clear()
    (await start(LoneWaker(database.service_dsn))).wake(INBOX)
    await asyncio.wait_for(listener.event(INBOX).wait(), 5)
    assert not listener.event(OUTBOX).is_set()
    await listener.stop()
    assert not listener.is_up


async def test_nothing_is_lost_when_the_listener_is_terminated(
    database: Any, service: AsyncConnection[Any], start: Start
) -> None:
    listener = await start(Listener(database.service_dsn, [INBOX]))
    listener.event(INBOX).clear()
    assert len(await backends(service, "statesvc listener", drop=True)) == 1
    await until(lambda: not listener.is_up)
    assert listener.event(INBOX).is_set(), "its owner must learn that it now has to sweep faster"
    listener.event(INBOX).clear()
    # announced while nobody listens: only the event that follows LISTEN can tell
    await service.execute("SELECT pg_notify(%s, '')", (INBOX,))
    await until(lambda: listener.is_up)
    assert listener.event(INBOX).is_set()


async def test_a_process_that_listens_sends_over_the_same_connection(
    database: Any, service: AsyncConnection[Any], heard: list[Heard], start: Start
) -> None:
    listener = Listener(database.service_dsn, [OUTBOX], ping_seconds=0.001)
    waker = await start(Waker(listener, interval_seconds=0.001))
    # asked for before there is a connection
    waker.wake(INBOX)
    await start(listener)
    await until(lambda: channels(heard) == [INBOX])
    # a hint that comes during a ping is heard
    for _ in range(200):
        listener.event(OUTBOX).clear()
        waker.wake(INBOX)
        await service.execute("SELECT pg_notify(%s, '')", (OUTBOX,))
        await asyncio.wait_for(listener.event(OUTBOX).wait(), 2)
    assert len(await backends(service, "statesvc listener", drop=True)) == 1
    await until(lambda: not listener.is_up)
    heard.clear()
    waker.wake(INBOX)
    await until(lambda: INBOX in channels(heard))
    assert listener.is_up
    assert len(await backends(service, "statesvc listener")) == 1, "one connection for both"
    heard.clear()
    waker.wake(INBOX)
    await waker.stop()
    await until(lambda: INBOX in channels(heard))


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
    listener, waker = Listener(absent, [INBOX]), LoneWaker(absent)
    await listener.start()
    await waker.start()
    waker.wake(INBOX)
    await asyncio.sleep(1)
    await listener.stop()
    await waker.stop()
    assert 4 <= tries <= 12, "two connections, each at most about five tries in the first second"


async def test_a_server_process_that_froze_is_left_for_another(
    database: Any, service: AsyncConnection[Any], heard: list[Heard], start: Start
) -> None:
    if "TEST_DATABASE_URL" in os.environ:
        pytest.skip("that server's processes may run elsewhere")
    waker = await start(LoneWaker(database.service_dsn, interval_seconds=0.01))
    waker.wake(INBOX)
    await until(lambda: len(heard) == 1)
    (frozen,) = await backends(service, "statesvc listener")
    os.kill(frozen, signal.SIGSTOP)
    try:
        waker.wake(OUTBOX)
        await until(lambda: OUTBOX in channels(heard), seconds=20)
        await waker.stop()
    finally:
        os.kill(frozen, signal.SIGCONT)


ABSENT = "host=127.0.0.1 port=1 dbname=none"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="wake-") as name:
        yield Path(name)


@pytest.fixture
def local(folder: Path) -> Iterator[LocalWaker]:
    waker = LocalWaker(folder, sender="me")
    yield waker
    waker.close()


@pytest.fixture
def frozen(folder: Path) -> Iterator[None]:
    """Hold the socket of the first listener as a process that does not read it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(str(folder / f"{INBOX}.{0:020d}.frozen"))
        yield


async def test_only_listeners_of_the_channel_are_woken(folder: Path, local: LocalWaker) -> None:
    heard: list[tuple[str, str]] = []
    listener = LocalListener(
        folder, [INBOX], lambda channel, sender: heard.append((channel, sender))
    )
    assert not local.wake(OUTBOX)
    assert local.wake(INBOX)
    await until(lambda: heard == [(INBOX, "me")])
    listener.close()
    assert not local.wake(INBOX)


async def test_of_several_workers_the_first_is_woken_and_the_next_once_it_is_gone(
    folder: Path, local: LocalWaker
) -> None:
    heard: list[str] = []
    first = LocalListener(folder, [INBOX], lambda *_: heard.append("first"))
    second = LocalListener(folder, [INBOX], lambda *_: heard.append("second"))
    assert local.wake(INBOX)
    await until(lambda: heard == ["first"])
    first.close()
    assert local.wake(INBOX)
    await until(lambda: heard == ["first", "second"])
    second.close()


@pytest.mark.slow
@pytest.mark.usefixtures("frozen")
async def test_the_second_worker_hears_within_a_second_when_the_first_is_frozen(
    database: Any, folder: Path, start: Start
) -> None:
    second = await start(Listener(database.service_dsn, [INBOX], folder=folder))
    waker = await start(LoneWaker(database.service_dsn, folder=folder))
    for _ in range(3):
        second.event(INBOX).clear()
        waker.wake(INBOX)
        await asyncio.wait_for(second.event(INBOX).wait(), 1)


@pytest.mark.slow
async def test_a_second_worker_leaves_the_first_one_its_window(
    database: Any, folder: Path, start: Start
) -> None:
    first = LocalListener(folder, [INBOX], lambda *_: None)
    second = await start(Listener(database.service_dsn, [INBOX], first_within_seconds=0.5))
    second.event(INBOX).clear()
    (await start(LoneWaker(database.service_dsn, folder=folder))).wake(INBOX)
    began = time.monotonic()
    await asyncio.wait_for(second.event(INBOX).wait(), 5)
    assert time.monotonic() - began >= 0.5
    first.close()


async def test_while_a_channel_is_paused_its_wake_ups_wait(folder: Path, local: LocalWaker) -> None:
    heard: list[str] = []
    listener = LocalListener(folder, [INBOX, OUTBOX], lambda channel, _: heard.append(channel))
    with listener.paused(INBOX):
        assert local.wake(INBOX)
        assert local.wake(OUTBOX)
        await until(lambda: heard == [OUTBOX])
    assert heard == [OUTBOX, INBOX]
    local.wake(INBOX)
    await until(lambda: heard == [OUTBOX, INBOX, INBOX])
    with listener.paused(INBOX):
        listener.close()


async def test_the_socket_of_a_dead_process_is_removed(folder: Path, local: LocalWaker) -> None:
    left = folder / f"{INBOX}.dead"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(left))
    assert not local.wake(INBOX)
    assert not left.exists()


@pytest.mark.usefixtures("frozen")
async def test_a_listener_whose_queue_is_full_counts_as_woken(local: LocalWaker) -> None:
    assert all(local.wake(INBOX) for _ in range(2000))


async def test_a_wake_up_needs_no_server_on_one_machine(folder: Path) -> None:
    listener, waker = Listener(ABSENT, [INBOX], folder=folder), LoneWaker(ABSENT, folder=folder)
    await listener.start()
    waker.wake(INBOX)
    await asyncio.wait_for(listener.event(INBOX).wait(), 5)
    await listener.stop()
    await waker.stop()


@pytest.mark.slow
async def test_listeners_elsewhere_are_notified_less_often(
    database: Any, folder: Path, heard: list[Heard], start: Start
) -> None:
    here = await start(Listener(database.service_dsn, [INBOX], folder=folder))
    waker = await start(LoneWaker(database.service_dsn, folder=folder))
    waker.wake(INBOX)
    await until(lambda: len(heard) == 1)
    here.event(INBOX).clear()
    waker.wake(INBOX)
    await asyncio.wait_for(here.event(INBOX).wait(), 5)
    here.event(INBOX).clear()
    await until(lambda: len(heard) == 2)
    assert heard[1].at - heard[0].at > LONG_INTERVAL_SECONDS / 2
    assert heard[0].payload
    assert not here.event(INBOX).is_set(), (
        "it has heard this sender already, so a notification tells it nothing"
    )


@pytest.mark.slow
async def test_a_wake_up_that_nobody_here_has_heard_waits_for_no_other(
    database: Any, heard: list[Heard], start: Start
) -> None:
    waker = await start(LoneWaker(database.service_dsn))
    waker.wake(LOG)
    await until(lambda: len(heard) == 1)
    waker.wake(LOG)
    waker.wake(INBOX)
    await until(lambda: len(heard) == 3)
    assert heard[2].at - heard[0].at < LONG_INTERVAL_SECONDS
    waker.wake(LOG)
    await until(lambda: len(heard) == 4)
    assert heard[3].at - heard[2].at > LONG_INTERVAL_SECONDS / 2, "who seals keeps a pace"

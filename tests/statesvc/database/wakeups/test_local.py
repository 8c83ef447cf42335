"""Wake-ups between processes of one machine."""

import asyncio
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.local import LocalListener, LocalWaker
from statesvc.database.wakeups.waker import LONG_INTERVAL_SECONDS
from statesvc.database.wakeups.wakeup import INBOX, LOG, OUTBOX
from tests.statesvc.database.wakeups.conftest import Heard, Start
from tests.world.lone_waker import LoneWaker
from tests.world.waiting import until

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

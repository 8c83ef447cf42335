"""Results that a process of the pool returns, and the priority of what is busy."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statesvc.background.busy_priority import BUSY_PER_SECOND, BusyPriority, may_return
from statesvc.background.forking import ForkedResultError, forked_result
from tests.world.waiting import has_ended


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def niceness() -> Iterator[int]:
    if not may_return():
        pytest.skip("this system lets no process take its niceness back")
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    yield 10
    os.setpriority(os.PRIO_PROCESS, 0, before)


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def test_at_the_load_of_a_day_it_stands_back_behind_nobody(niceness: int) -> None:
    clock = Clock()
    priority = BusyPriority(niceness, clock=clock)
    for _ in range(1000):
        clock.now += 0.01
        priority.claimed(3, has_backlog=False)
    assert nice() == 0


def test_behind_a_backlog_it_stands_back_until_it_is_calm_again(niceness: int) -> None:
    clock = Clock()
    priority = BusyPriority(niceness, clock=clock)
    priority.claimed(64, has_backlog=True)
    assert nice() == niceness
    clock.now += 1.9
    priority.claimed(1, has_backlog=False)
    assert nice() == niceness
    clock.now += 0.2
    priority.claimed(1, has_backlog=False)
    assert nice() == 0


def test_many_small_claims_are_much_to_do_too(niceness: int) -> None:
    clock = Clock()
    priority = BusyPriority(niceness, clock=clock)
    for _ in range(BUSY_PER_SECOND // 6 + 1):
        clock.now += 0.005
        priority.claimed(6, has_backlog=False)
    assert nice() == niceness


def test_outside_of_up_a_process_is_as_nice_as_it_was_started(niceness: int) -> None:
    assert niceness
    priority = BusyPriority(0)
    priority.claimed(64, has_backlog=True)
    assert nice() == 0


LONG = 1_000_000
"""More than a pipe holds."""


def test_the_result_comes_from_a_process_that_has_ended() -> None:
    found = forked_result(lambda: str(os.getpid()).encode().rjust(LONG))
    assert len(found) == LONG
    pid = int(found)
    assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_copy_that_fails_says_why_and_goes_no_further(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> bytes:
        raise RuntimeError("it has no words")

    with pytest.raises(ForkedResultError, match="ended with 1"):
        forked_result(fail)
    assert "it has no words" in capfd.readouterr().err


@pytest.mark.usefixtures("own_processes")
def test_a_copy_ends_soon_after_its_process_was_killed(tmp_path: Path) -> None:
    def compute_when_alone() -> bytes:
        (tmp_path / "pid").write_text(f"{os.getpid()}")
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.01)
        return bytes(LONG)

    process = multiprocessing.get_context("fork").Process(
        target=forked_result, args=(compute_when_alone,)
    )
    process.start()
    pid = int(
        awaited(lambda: (tmp_path / "pid").read_text() if (tmp_path / "pid").exists() else "")
    )
    process.kill()
    process.join()
    awaited(lambda: "ended" if has_ended(pid) else "")


def awaited(what: Callable[[], str]) -> str:
    deadline = time.monotonic() + 30
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found

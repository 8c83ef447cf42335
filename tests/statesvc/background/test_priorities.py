"""Processes that compute let everyone else go first, and end with whoever started them."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from statesvc.background.bulk_pool import NICENESS, BulkPool
from statesvc.background.busy_priority import BUSY_PER_SECOND, BusyPriority, may_return
from statesvc.background.forking import ForkedResultError, forked_result
from tests.world.waiting import has_ended

pytestmark = pytest.mark.usefixtures("own_processes")
DEADLINE = 30.0
_begun: list[str] = []


def begin(word: str) -> None:
    _begun.append(word)


def place() -> tuple[list[str], int, bool, str]:
    autogroup = Path("/proc/self/autogroup")
    return (
        _begun,
        os.getpriority(os.PRIO_PROCESS, 0),
        os.getsid(0) == os.getpid(),
        autogroup.read_text() if autogroup.exists() else "",
    )


def hang(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    signal.pause()


def command(path: str) -> None:
    """Run a command whose process computes."""
    with BulkPool(1, begin, "now") as pool:
        pool.submit(hang, path).result()


def until(what: Callable[[], bool]) -> None:
    ends = time.monotonic() + DEADLINE
    while not what():
        assert time.monotonic() < ends
        time.sleep(0.02)


def written(path: Path) -> int:
    until(lambda: path.exists() and path.read_text() != "")
    return int(path.read_text())


def test_its_processes_let_everyone_else_go_first() -> None:
    with BulkPool(1, begin, "now") as pool:
        begun, niceness, leads, session = pool.submit(place).result(DEADLINE)
    assert (begun, niceness, leads) == (["now"], NICENESS, True)
    # empty where the kernel has no such groups
    assert not session or session.endswith(f" nice {NICENESS}\n")


@pytest.mark.skipif(
    not hasattr(os, "SCHED_IDLE"),
    reason="only Linux interrupts a process for whatever else wants to run",
)
def test_its_processes_are_interrupted_by_everyone_else() -> None:
    with BulkPool(1, begin, "now") as pool:
        assert pool.submit(os.sched_getscheduler, 0).result(DEADLINE) == os.SCHED_IDLE


def test_a_block_that_fails_does_not_wait_for_them(tmp_path: Path) -> None:
    path = tmp_path / "pid"

    def interrupted() -> int:
        with BulkPool(1, begin, "now") as pool:
            pool.submit(hang, str(path))
            written(path)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    until(lambda: has_ended(written(path)))


def test_given_up_by_another_thread_what_runs_fails(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with BulkPool(1, begin, "now") as pool:
        running = pool.submit(hang, str(path))
        written(path)
        pool.abandon()
        with pytest.raises(BrokenProcessPool):
            running.result(DEADLINE)


def test_they_end_with_a_command_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    started = multiprocessing.get_context("spawn").Process(target=command, args=(str(path),))
    started.start()
    child = written(path)
    assert started.pid is not None
    os.kill(started.pid, signal.SIGKILL)
    started.join()
    until(lambda: has_ended(child))


def fail_to_begin() -> None:
    raise ConnectionRefusedError("nobody is there")


def test_what_a_process_fails_to_begin_with_is_raised_where_its_work_is_awaited(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with (
        pytest.raises(ConnectionRefusedError, match="nobody is there"),
        BulkPool(1, fail_to_begin) as pool,
    ):
        pool.submit(os.getpid).result(DEADLINE)
    assert "Traceback" not in capfd.readouterr().err


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

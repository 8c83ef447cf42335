"""Processes that compute for long: behind everyone else, and gone with their command."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from statesvc.background.bulk_pool import NICENESS, BulkPool
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

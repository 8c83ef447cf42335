"""Children that are forked from a supervisor which has loaded all roles.

What a supervisor does here is in functions that `main` runs.
"""

import asyncio
import errno
import gc
import json
import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from statesvc.roles.shutdown import SUPERVISED_VARIABLE, StopSignals
from statesvc.roles.supervisor.child_process import ChildProcess, ChildProgram
from statesvc.roles.supervisor.start_child import Child, ForkedProgram, Forks, spawn
from tests.world.forked import ForkedProcess
from tests.world.forked import fork as start_program
from tests.world.waiting import until

pytestmark = pytest.mark.usefixtures("own_processes")

REPORT, STOP, ABORT = range(3)
"""The programs, by their numbers."""


def programs(folder: Path) -> list[ForkedProgram]:
    return [
        ForkedProgram(
            run=partial(report, folder / "report"), title="statesvc worker --port 1", niceness=3
        ),
        ForkedProgram(run=partial(stop_when_asked, folder / "stop"), title="statesvc api"),
        ForkedProgram(
            run=partial(stop_when_asked, folder / "abort", aborts=True), title="statesvc sealer"
        ),
        ForkedProgram(run=fail, title="statesvc notifier"),
    ]


def report(path: Path) -> int:
    seen = {
        "environment": dict(os.environ),
        "leads": os.getsid(0) == os.getpid(),
        "loaded": "statesvc.roles.worker_role" in sys.modules,
        "frozen": gc.get_freeze_count(),
        "niceness": os.nice(0),
        "niceness of the session": read(Path("/proc/self/autogroup")),
        "title": title_of(os.getpid()),
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    }
    path.write_text(json.dumps(seen))
    return 7


def stop_when_asked(path: Path, *, aborts: bool = False) -> int:
    """Print `up` when it listens; once it was asked to stop, or to abort, print
    which of the two it was.
    """

    async def listen() -> None:
        signals = StopSignals()
        signals.listen()
        write(path, f"up {os.getpid()}")
        await (signals.aborting if aborts else signals.stopping).wait()
        write(path, "aborted" if aborts else "stopped")

    asyncio.run(listen())
    return 0


def fail() -> int:
    raise RuntimeError("it has no words")


def write(path: Path, text: str) -> None:
    path.write_text(text)


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def title_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode()


async def until_says(path: Path, word: str) -> str:
    await until(lambda: read(path).startswith(word))
    return read(path)


async def ended(child: Child) -> int:
    return await asyncio.wait_for(child.wait(), 30)


async def supervised(scenario: str, folder: Path) -> ForkedProcess:
    """Run one of the functions below as a supervisor, in a process."""
    environment = {"PATH": os.environ["PATH"], "ONLY": "mine"}
    return await start_program(
        __name__, [scenario, str(folder)], environment=environment, output=folder / "output"
    )


async def assert_runs(scenario: str, folder: Path) -> None:
    supervisor = await supervised(scenario, folder)
    assert await asyncio.wait_for(supervisor.wait(), 60) == 0, read(folder / "output")


def main() -> int:
    """Run in the process that supervises; its arguments are a function's name, and a folder."""
    folder = Path(sys.argv[2])

    async def scenario() -> None:
        await globals()[sys.argv[1]](Forks(), folder)

    asyncio.run(scenario())
    return 0


async def child_reports(forks: Forks, folder: Path) -> None:
    child = await forks.fork(programs(folder)[REPORT])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(child.wait(), 0)
    # the end arrives though somebody gave up waiting
    assert await ended(child) == 7


async def test_it_is_one_with_what_it_shares_and_alone_with_what_it_does_not(
    tmp_path: Path,
) -> None:
    await assert_runs("child_reports", tmp_path)
    seen = json.loads(read(tmp_path / "report"))
    assert seen["environment"] == {
        "PATH": os.environ["PATH"],
        "ONLY": "mine",
        SUPERVISED_VARIABLE: "1",
    }
    assert seen["leads"]
    assert seen["loaded"]
    assert seen["frozen"] > 100_000
    assert seen["niceness"] == os.nice(0) + 3
    # empty where the kernel has no such groups
    assert not seen["niceness of the session"] or seen["niceness of the session"].endswith(
        " nice 3\n"
    )
    assert seen["title"] == "statesvc worker --port 1"
    assert seen["blocked"] == []


async def children_stop(forks: Forks, folder: Path) -> None:
    _, stop, abort, fails = programs(folder)
    first, second = await forks.fork(stop), await forks.fork(abort)
    await until_says(folder / "stop", "up")
    await until_says(folder / "abort", "up")
    first.signal(signal.SIGTERM)
    second.signal(signal.SIGKILL)
    assert await ended(first) == 0
    assert await ended(second) == -signal.SIGKILL
    assert read(folder / "stop") == "stopped"
    # it has ended: nobody is hit
    second.signal(signal.SIGKILL)
    assert await ended(await forks.fork(fails)) == 1


async def test_it_stops_when_it_is_asked_and_ends_when_it_is_killed(tmp_path: Path) -> None:
    await assert_runs("children_stop", tmp_path)
    assert "it has no words" in read(tmp_path / "output")


async def child_is_asked_at_once(forks: Forks, folder: Path) -> None:
    child = await forks.fork(programs(folder)[STOP])
    child.signal(signal.SIGTERM)
    assert await ended(child) in {0, -signal.SIGTERM}


async def test_it_stops_when_it_is_asked_before_it_listens(tmp_path: Path) -> None:
    await assert_runs("child_is_asked_at_once", tmp_path)


async def child_is_asked_twice(forks: Forks, folder: Path) -> None:
    abort = programs(folder)[ABORT]
    child = ChildProcess(ChildProgram(name="worker", start=partial(forks.fork, abort)))
    running = asyncio.create_task(child.run())
    pid = int((await until_says(folder / "abort", "up")).split()[1])
    # it runs again only when both are there
    os.kill(pid, signal.SIGSTOP)
    child.stop()
    child.stop()
    os.kill(pid, signal.SIGCONT)
    await asyncio.wait_for(running, 30)


async def test_asked_twice_in_a_moment_it_stops_at_once(tmp_path: Path) -> None:
    await assert_runs("child_is_asked_twice", tmp_path)
    assert read(tmp_path / "abort") == "aborted"


async def sibling_is_killed_with_the_supervisor(forks: Forks, folder: Path) -> None:
    await forks.fork(programs(folder)[STOP])
    await until_says(folder / "stop", "up")
    # forked later: it must not keep the first one's input open
    await (await forks.fork(programs(folder)[ABORT])).wait()


async def test_it_notices_the_death_though_a_sibling_lives(tmp_path: Path) -> None:
    supervisor = await supervised("sibling_is_killed_with_the_supervisor", tmp_path)
    _, sibling = (await until_says(tmp_path / "abort", "up")).split()
    os.kill(int(sibling), signal.SIGSTOP)
    supervisor.kill()
    await supervisor.wait()
    assert await until_says(tmp_path / "stop", "stopped")
    os.kill(int(sibling), signal.SIGKILL)


async def test_a_start_that_the_system_refuses_is_tried_again() -> None:
    refusals = [OSError(errno.EAGAIN, "no process left")]

    async def start() -> Child:
        if refusals:
            raise refusals.pop()
        return await spawn(["true"], {})()

    child = ChildProcess(ChildProgram(name="demo", start=start, restart=False))
    with capture_logs() as logs:
        await asyncio.wait_for(child.run(), 30)
    assert [line["event"] for line in logs] == ["fork_failed", "child_started", "child_ended"]

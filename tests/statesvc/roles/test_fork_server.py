"""Children that are forked from a process which has loaded all roles.

What a supervisor does here is in functions that `main` runs.
"""

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from statesvc.roles.shutdown import SUPERVISED_VARIABLE, StopSignals
from statesvc.roles.supervisor.child_process import ChildProcess, ChildProgram
from statesvc.roles.supervisor.fork_server import (
    FORK_SERVER_DIED,
    TITLE,
    ForkedChild,
    ForkedProgram,
    ForkFailedError,
    ForkServer,
)
from statesvc.roles.supervisor.start_child import Child, fork, spawn
from tests.world.forked import ForkedProcess
from tests.world.forked import fork as start_program

pytestmark = pytest.mark.usefixtures("own_processes")

REPORT, STOP, ABORT, FAIL = range(4)
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


def has_ended(pid: int) -> bool:
    """Return whether it has ended, also as a zombie that nobody reaps."""
    stat = read(Path(f"/proc/{pid}/stat"))
    return not stat or stat.rpartition(")")[2].split()[0] == "Z"


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not what():  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.02)


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
    server = ForkServer(programs(folder))
    asyncio.run(globals()[sys.argv[1]](server, folder))
    server.close()
    assert has_ended(server.pid)
    return 0


async def child_reports(server: ForkServer, _folder: Path) -> None:
    assert await ended(await server.fork(REPORT)) == 7


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


async def children_stop(server: ForkServer, folder: Path) -> None:
    first, second = await server.fork(STOP), await server.fork(ABORT)
    await until_says(folder / "stop", "up")
    await until_says(folder / "abort", "up")
    first.signal(signal.SIGTERM)
    second.signal(signal.SIGKILL)
    assert await ended(first) == 0
    assert await ended(second) == -signal.SIGKILL
    assert read(folder / "stop") == "stopped"
    # it has ended: nobody is hit
    second.signal(signal.SIGKILL)
    assert await ended(await server.fork(FAIL)) == 1


async def test_it_stops_when_it_is_asked_and_ends_when_it_is_killed(tmp_path: Path) -> None:
    await assert_runs("children_stop", tmp_path)
    assert "it has no words" in read(tmp_path / "output")


async def child_is_asked_at_once(server: ForkServer, _folder: Path) -> None:
    child = await server.fork(STOP)
    child.signal(signal.SIGTERM)
    assert await ended(child) in {0, -signal.SIGTERM}


async def test_it_stops_when_it_is_asked_before_it_listens(tmp_path: Path) -> None:
    await assert_runs("child_is_asked_at_once", tmp_path)


async def child_is_asked_twice(server: ForkServer, folder: Path) -> None:
    child = ChildProcess(
        ChildProgram(name="worker", start=fork(server, ABORT, otherwise=spawn(["false"], {})))
    )
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


async def child_is_awaited(server: ForkServer, folder: Path) -> None:
    (folder / "server").write_text(str(server.pid))
    await (await server.fork(STOP)).wait()


async def test_it_notices_that_its_supervisor_died_and_so_does_what_it_was_forked_from(
    tmp_path: Path,
) -> None:
    supervisor = await supervised("child_is_awaited", tmp_path)
    await until_says(tmp_path / "stop", "up")
    supervisor.kill()
    await supervisor.wait()
    assert await until_says(tmp_path / "stop", "stopped")
    await until(lambda: has_ended(int(read(tmp_path / "server"))))


async def server_dies(server: ForkServer, folder: Path) -> None:
    first, second = await server.fork(STOP), await server.fork(ABORT)
    assert title_of(server.pid) == TITLE
    await until_says(folder / "stop", "up")
    await until_says(folder / "abort", "up")
    # neither a terminal nor who ends all processes of a group ends it before the roles
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(server.pid, number)
    assert await ended(await server.fork(REPORT)) == 7
    os.kill(server.pid, signal.SIGKILL)
    assert await ended(first) == await ended(second) == FORK_SERVER_DIED
    await until(lambda: has_ended(first.pid) and has_ended(second.pid))
    (folder / "stop").unlink()
    alone = spawn(["false"], {})
    again = await asyncio.gather(
        *(fork(server, number, otherwise=alone)() for number in (STOP, REPORT))
    )
    assert title_of(server.pid) == TITLE
    assert await ended(again[1]) == 7
    await until_says(folder / "stop", "up")
    again[0].signal(signal.SIGTERM)
    assert await ended(again[0]) == 0
    # also while it is asked
    os.kill(server.pid, signal.SIGKILL)
    assert await ended(await fork(server, REPORT, otherwise=alone)()) == 7
    (folder / "stop").unlink()
    (folder / "server").write_text(str(server.pid))
    await (await server.fork(STOP)).wait()


async def test_roles_do_not_outlive_the_fork_server_and_start_again_from_another(
    tmp_path: Path,
) -> None:
    supervisor = await supervised("server_dies", tmp_path)
    await until(lambda: bool(read(tmp_path / "server")))
    await until_says(tmp_path / "stop", "up")
    seen = json.loads(read(tmp_path / "report"))
    assert seen["environment"] == {
        "PATH": os.environ["PATH"],
        "ONLY": "mine",
        SUPERVISED_VARIABLE: "1",
    }
    assert (seen["leads"], seen["loaded"], seen["blocked"], seen["niceness"]) == (
        True,
        True,
        [],
        os.nice(0) + 3,
    )
    # neither holds on to what is the supervisor's
    supervisor.kill()
    await supervisor.wait()
    assert await until_says(tmp_path / "stop", "stopped")
    await until(lambda: has_ended(int(read(tmp_path / "server"))))
    assert read(tmp_path / "output").count("fork_server_died") == 2


async def test_a_program_starts_alone_where_none_can_be_forked() -> None:
    class Failing(ForkServer):
        def __init__(self) -> None:
            self.pid = 0

        async def fork(self, number: int) -> ForkedChild:  # noqa: ARG002 - as it is called
            raise ForkFailedError

    niceness = os.nice(0) + 4
    command = [
        sys.executable,
        "-c",
        f"import os, time\nwhile os.nice(0) < {niceness}: time.sleep(0.02)",
    ]
    assert (
        await ended(await fork(Failing(), STOP, otherwise=spawn(command, {}, niceness=niceness))())
        == 0
    )

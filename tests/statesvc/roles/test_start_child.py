"""Children that are forked from a process which has loaded all roles."""

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from statesvc.roles.shutdown import SUPERVISED_VARIABLE, StopSignals
from statesvc.roles.supervisor.child_process import ChildProcess, ChildProgram
from statesvc.roles.supervisor.start_child import FORK_SERVER_DIED, fork

pytestmark = pytest.mark.usefixtures("own_processes")

ROOT = Path(__file__).parents[3]


def report(arguments: Sequence[str]) -> int:
    """Writes what it sees to the file that the first argument names, and ends with the second as its exit code."""
    seen = {
        "environment": dict(os.environ),
        "leads": os.getsid(0) == os.getpid(),
        "loaded": "statesvc.roles.worker_role" in sys.modules,
        "frozen": gc.get_freeze_count(),
        "niceness": os.nice(0),
        "niceness of the session": read(Path("/proc/self/autogroup")),
        "title": Path(f"/proc/{os.getpid()}/cmdline").read_bytes().rstrip(b"\0").decode(),
    }
    Path(arguments[0]).write_text(json.dumps(seen))
    return int(arguments[1])


def stop_when_asked(arguments: Sequence[str]) -> int:
    """Says `up` when it listens; once it was asked to stop, or with a second argument to abort, which of the two it was."""
    path, aborts = Path(arguments[0]), len(arguments) > 1

    async def main() -> None:
        signals = StopSignals()
        signals.listen()
        write(path, f"up {os.getpid()}")
        await (signals.aborting if aborts else signals.stopping).wait()
        write(path, "aborted" if aborts else "stopped")

    asyncio.run(main())
    return 0


def write(path: Path, text: str) -> None:
    path.write_text(text)


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def has_ended(pid: int) -> bool:
    """Also as a zombie that nobody reaps."""
    stat = read(Path(f"/proc/{pid}/stat"))
    return not stat or stat.rpartition(")")[2].split()[0] == "Z"


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not what():  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.02)


async def until_says(path: Path, word: str) -> str:
    await until(lambda: read(path).startswith(word))
    return read(path)


async def test_it_is_one_with_what_it_shares_and_alone_with_what_it_does_not(tmp_path: Path) -> None:
    path = tmp_path / "report"
    child = await fork(report, [str(path), "7"], {"PATH": "/bin", "ONLY": "mine"}, niceness=3)()
    assert await asyncio.wait_for(child.wait(), 30) == 7
    seen = json.loads(path.read_text())
    assert seen["environment"] == {"PATH": "/bin", "ONLY": "mine", SUPERVISED_VARIABLE: "1"}
    assert seen["leads"]
    assert seen["loaded"]
    assert seen["frozen"] > 100_000
    assert seen["niceness"] == os.nice(0) + 3
    # empty where the kernel has no such groups
    assert not seen["niceness of the session"] or seen["niceness of the session"].endswith(" nice 3\n")
    assert seen["title"] == f"statesvc {path} 7"


async def test_it_stops_when_it_is_asked_and_ends_when_it_is_killed(tmp_path: Path) -> None:
    asked, killed = tmp_path / "asked", tmp_path / "killed"
    first = await fork(stop_when_asked, [str(asked)], dict(os.environ))()
    second = await fork(stop_when_asked, [str(killed)], dict(os.environ))()
    await until_says(asked, "up")
    await until_says(killed, "up")
    first.signal(signal.SIGTERM)
    second.signal(signal.SIGKILL)
    assert await asyncio.wait_for(first.wait(), 30) == 0
    assert await asyncio.wait_for(second.wait(), 30) == -signal.SIGKILL
    assert asked.read_text() == "stopped"
    # it has ended: nobody is hit
    second.signal(signal.SIGKILL)


async def test_asked_twice_in_a_moment_it_stops_at_once(tmp_path: Path) -> None:
    path = tmp_path / "child"
    child = ChildProcess(ChildProgram(name="worker", start=fork(stop_when_asked, [str(path), "abort"], dict(os.environ))))
    running = asyncio.create_task(child.run())
    pid = int((await until_says(path, "up")).split()[1])
    # it runs again only when both are there
    os.kill(pid, signal.SIGSTOP)
    child.stop()
    child.stop()
    os.kill(pid, signal.SIGCONT)
    await asyncio.wait_for(running, 30)
    assert read(path) == "aborted"


SUPERVISOR = """
import asyncio, os, sys
from statesvc.roles.supervisor.start_child import fork
from tests.statesvc.roles.test_start_child import stop_when_asked

async def main():
    child = await fork(stop_when_asked, [sys.argv[1]], dict(os.environ))()
    print(await child.wait(), flush=True)

if __name__ == "__main__":
    asyncio.run(main())
"""


async def start_supervisor(tmp_path: Path) -> tuple[asyncio.subprocess.Process, Path, int]:
    program, path = tmp_path / "supervisor.py", tmp_path / "child"
    program.write_text(SUPERVISOR)
    supervisor = await asyncio.create_subprocess_exec(
        sys.executable, str(program), str(path), stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    return supervisor, path, int((await until_says(path, "up")).split()[1])


async def test_it_notices_that_its_supervisor_died(tmp_path: Path) -> None:
    supervisor, path, _ = await start_supervisor(tmp_path)
    supervisor.kill()
    await supervisor.wait()
    assert await until_says(path, "stopped")


async def test_it_does_not_outlive_the_process_that_it_was_forked_from(tmp_path: Path) -> None:
    supervisor, _, pid = await start_supervisor(tmp_path)
    server = int(read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[1])
    assert server not in {supervisor.pid, 1}
    os.kill(server, signal.SIGKILL)
    output, _ = await asyncio.wait_for(supervisor.communicate(), 30)
    assert int(output) == FORK_SERVER_DIED
    await until(lambda: has_ended(pid))

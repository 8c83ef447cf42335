"""Start of a child process: forked from the supervisor, or as a program of its own.

Forked children share the pages of loaded modules: an idle role takes a tenth of the memory. Either
child runs in a session of its own, so that a Ctrl-C in the terminal reaches the supervisor alone.
Its standard input ends when the supervisor dies, which the child takes as a request to stop.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

import setproctitle

from statesvc.background.forking import fork_to
from statesvc.background.niceness import own_session
from statesvc.roles.shutdown import SUPERVISED_VARIABLE

_STANDARD_END: Final = 3


class Child(Protocol):
    @property
    def pid(self) -> int: ...

    async def wait(self) -> int:
        """Return its exit code, once it has ended; negative: the signal that ended it."""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; do nothing if it has ended."""


# Raises OSError where the system gives no process.
Start = Callable[[], Awaitable[Child]]


def spawn(command: Sequence[str], environment: Mapping[str, str]) -> Start:
    """Start a program."""

    async def start() -> Child:
        supervised = {**environment, SUPERVISED_VARIABLE: "1"}
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, env=supervised, start_new_session=True
        )
        return _Spawned(process)

    return start


class _Spawned:
    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        return await self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedProgram:
    """Program of a child. `niceness`: as in `nice`."""

    run: Callable[[], int]
    """Returns the exit code."""
    title: str
    niceness: int = 0


class Forks:
    """Forks children, and notices their ends, as long as the running loop runs."""

    def __init__(self) -> None:
        self._running: list[_Forked] = []
        # not a thread a child that waits: it would run at the next fork, whose copy would keep
        # for ever the locks that it holds in that moment
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)

    async def fork(self, program: ForkedProgram) -> Child:
        standard_input, lifeline = os.pipe()
        try:
            pid = fork_to(lambda: _run(program, standard_input))
        except OSError:
            os.close(lifeline)
            raise
        finally:
            os.close(standard_input)
        child = _Forked(pid, lifeline)
        self._running.append(child)
        return child

    def _reap(self) -> None:
        # all of them: signals of a kind that come close together are one
        self._running = [child for child in self._running if not child.has_ended()]


class _Forked:
    def __init__(self, pid: int, lifeline: int) -> None:
        self.pid = pid
        self._lifeline = lifeline
        self._exit_code = 0
        self._ended = asyncio.Event()

    def has_ended(self) -> bool:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self._exit_code = os.waitstatus_to_exitcode(status)
            os.close(self._lifeline)
            self._ended.set()
        return bool(pid)

    async def wait(self) -> int:
        await self._ended.wait()
        return self._exit_code

    def signal(self, number: signal.Signals) -> None:
        # once reaped, the number may be a stranger's
        if not self._ended.is_set():
            os.kill(self.pid, number)


def _run(program: ForkedProgram, standard_input: int) -> int:
    """Run in the child."""
    os.dup2(standard_input, 0)
    # all else is the supervisor's: with its end of another role's input open here, that role would
    # not notice the supervisor's death, and with the lock of the server's data nobody could start
    # it
    os.closerange(_STANDARD_END, os.sysconf("SC_OPEN_MAX"))
    # the supervisor may have had none
    sys.stdin = os.fdopen(0, closefd=False)
    os.environ[SUPERVISED_VARIABLE] = "1"
    own_session(niceness=program.niceness)
    setproctitle.setproctitle(program.title)
    return program.run()

"""The process that roles are forked from: itself forked from the supervisor, once that has loaded
everything and before it does anything.

The supervisor is not the one, for it runs a loop and threads, which a role must not inherit. This
one does nothing else, and so what it shares with the supervisor and the roles stays shared, and a
role that starts again months later is as the first.

```
supervisor --the number of a program, two pipes--> fork server --fork--> role
   |  <--------- its process number, then its exit code ---------+        |
   +----------- standard input of the role, which ends with the supervisor
```
Where it dies, the supervisor sees the pipes of all roles end without an exit code, and forks
another for the next that starts.
"""

import asyncio
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn

import setproctitle
import structlog

from statesvc.background.forking import fork_alone
from statesvc.background.niceness import own_session
from statesvc.roles.shutdown import SUPERVISED_VARIABLE

FORK_SERVER_DIED: Final = 255
"""Exit code of a child with a lost code."""
TITLE: Final = "statesvc fork-server"
_STANDARD_END: Final = 3
_TRIES: Final = 2
_NO_PROCESS: Final = -1
_NUMBER: Final = struct.Struct("i")
_HELD_BACK: Final = frozenset({signal.SIGTERM, signal.SIGINT})
"""It ends with the supervisor, not by these; its children are asked to stop by them, and take them
once they are on their own.
"""


log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedProgram:
    """Program of a child. `niceness`: as in `nice`."""

    run: Callable[[], int]
    """Returns the exit code."""
    title: str
    niceness: int = 0


class ForkFailedError(RuntimeError):
    """The system gives no process."""


class ForkServer:
    def __init__(self, programs: Sequence[ForkedProgram]) -> None:
        """Fork it, while this process has neither a loop nor threads."""
        self._programs = programs
        self._begin()

    async def fork(self, number: int) -> "ForkedChild":
        """Start a program by its number, from a new fork server if this has died.

        Raises ForkFailedError.
        """
        for _ in range(_TRIES):
            asked = self.pid
            child = await self._ask(number)
            if child is not None:
                return child
            # several may have asked
            if self.pid == asked:
                self._begin_again()
        raise ForkFailedError

    def _begin(self) -> None:
        self._control, theirs = socket.socketpair()
        self.pid = fork_alone()
        if self.pid == 0:
            _end_with(partial(_serve, theirs, self._programs))
        theirs.close()

    def _begin_again(self) -> None:
        log.error("fork_server_died", pid=self.pid)
        self.close()
        try:
            self._begin()
        except OSError as error:
            raise ForkFailedError from error

    async def _ask(self, number: int) -> "ForkedChild | None":
        """Ask for a child; None: the fork server has died, or is about to.

        Raises ForkFailedError.
        """
        ours_in, lifeline = os.pipe()
        report, theirs_out = os.pipe()
        pid = None
        try:
            with suppress(OSError):
                socket.send_fds(self._control, [_NUMBER.pack(number)], [ours_in, theirs_out])
                os.close(theirs_out)
                theirs_out = -1
                pid = await _read_number(report)
        finally:
            os.close(ours_in)
            if theirs_out >= 0:
                os.close(theirs_out)
            if pid is None or pid == _NO_PROCESS:
                os.close(lifeline)
                os.close(report)
        if pid == _NO_PROCESS:
            raise ForkFailedError
        return None if pid is None else ForkedChild(pid, report=report, lifeline=lifeline)

    def close(self) -> None:
        """End the fork server; children that run are asked to stop."""
        self._control.close()
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class ForkedChild:
    def __init__(self, pid: int, *, report: int, lifeline: int) -> None:
        self.pid = pid
        self._report = report
        self._lifeline = lifeline
        self._has_ended = False

    async def wait(self) -> int:
        """Return its exit code, once it has ended; negative: the signal that ended it.

        Once only.
        """
        exit_code = await _read_number(self._report)
        if exit_code is None:
            # the child may live, and nobody would see how it ends: it must not run next to its
            # successor
            self.signal(signal.SIGKILL)
            exit_code = FORK_SERVER_DIED
        self._has_ended = True
        os.close(self._report)
        os.close(self._lifeline)
        return exit_code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; do nothing if it has ended."""
        if not self._has_ended:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


async def _read_number(pipe: int) -> int | None:
    """Read a number; None at the end of the pipe."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(pipe, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(pipe)
    said = os.read(pipe, _NUMBER.size)
    return _NUMBER.unpack(said)[0] if said else None


def _serve(control: socket.socket, programs: Sequence[ForkedProgram]) -> int:
    """Serve until the supervisor is gone.

    The terminal is not its own: its end (SIGHUP) must not hide from the supervisor how roles end.
    """
    # all else is the supervisor's: with its end of a role's input open here, the role would not
    # notice the supervisor's death
    os.closerange(_STANDARD_END, control.fileno())
    os.closerange(control.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
    os.setsid()
    setproctitle.setproctitle(TITLE)
    os.environ[SUPERVISED_VARIABLE] = "1"
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
    ended, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    reports: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([control.fileno(), ended], [], [])
        if ended in readable:
            os.read(ended, 512)
            _report_ends(reports)
        if control.fileno() in readable:
            asked, pipes, _, _ = socket.recv_fds(control, _NUMBER.size, 2)
            if not asked:
                return 0
            lifeline, report = pipes
            try:
                pid = os.fork()
            except OSError:
                _say(report, _NO_PROCESS)
                os.close(lifeline)
                os.close(report)
                continue
            if pid == 0:
                program = programs[_NUMBER.unpack(asked)[0]]
                foreign = (control.detach(), ended, wakeup, report, *reports.values())
                _end_with(partial(_run, program, lifeline, foreign=foreign))
            os.close(lifeline)
            reports[pid] = report
            _say(report, pid)


def _report_ends(reports: dict[int, int]) -> None:
    for pid in list(reports):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            report = reports.pop(pid)
            _say(report, os.waitstatus_to_exitcode(status))
            os.close(report)


def _say(report: int, number: int) -> None:
    # the supervisor may be gone
    with suppress(OSError):
        os.write(report, _NUMBER.pack(number))


def _run(program: ForkedProgram, lifeline: int, *, foreign: Sequence[int]) -> int:
    """Run in the child. `foreign`: open files of the fork server."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for descriptor in foreign:
        os.close(descriptor)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
    own_session(niceness=program.niceness)
    os.dup2(lifeline, 0)
    os.close(lifeline)
    # the supervisor may have had none
    sys.stdin = os.fdopen(0, closefd=False)
    setproctitle.setproctitle(program.title)
    return program.run()


def _end_with(run: Callable[[], int]) -> NoReturn:
    """End this forked process without its parent's exit handlers."""
    exit_code = 1
    try:
        exit_code = run()
    except BaseException:  # noqa: BLE001 - nothing may go on from here as if it were the supervisor
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(exit_code)

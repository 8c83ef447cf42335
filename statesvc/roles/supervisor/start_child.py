"""How a child process starts: as a program of its own, or forked from a process that has loaded all roles and does nothing else.

Forked children share the pages of what was loaded before: a role that is idle takes a fifth of the memory that it takes alone. The process
that they are forked from is multiprocessing's fork server, for one that runs a loop and threads, as the supervisor does, cannot be forked.

Either child runs in a session of its own, so that a Ctrl-C in the terminal reaches the supervisor alone. Its standard input ends when the
supervisor dies, which the child takes as a request to stop.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

import setproctitle

from statesvc.background.niceness import own_session
from statesvc.roles.shutdown import SUPERVISED_VARIABLE

PRELOADED: Final = (
    *(f"statesvc.roles.{role}_role" for role in ("ingress", "api", "worker", "notifier", "sealer")),
    "statesvc.cli.role",
    # the last: what is loaded by then no collection visits again, which would copy its pages
    "statesvc.roles.supervisor.freeze",
)

FORK_SERVER_DIED: Final = 255
"""What multiprocessing reports as the exit code of a child then."""

Entry = Callable[[Sequence[str]], int]
"""Runs a command line in this process, and gives its exit code."""


class Child(Protocol):
    """A process that was started."""

    @property
    def pid(self) -> int:
        """Its number."""

    async def wait(self) -> int:
        """Its exit code, once it has ended; negative: the signal that ended it."""

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal; nothing where it has ended."""


Start = Callable[[], Awaitable[Child]]


def spawn(command: Sequence[str], environment: Mapping[str, str]) -> Start:
    """Starts a program."""

    async def start() -> Child:
        supervised = {**environment, SUPERVISED_VARIABLE: "1"}
        return _Spawned(await asyncio.create_subprocess_exec(*command, stdin=PIPE, env=supervised, start_new_session=True))

    return start


def fork(entry: Entry, arguments: Sequence[str], environment: Mapping[str, str], *, niceness: int = 0) -> Start:
    """Forks a process that calls `entry`, a function that is found by its name, with `arguments`.

    `niceness`: how far it stands back behind other processes when there is not enough processor for all, as `nice` has it.
    """

    async def start() -> Child:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(PRELOADED))
        process = context.Process(target=_run, args=(entry, list(arguments), {**environment, SUPERVISED_VARIABLE: "1"}, niceness))
        # the first one starts the server
        await asyncio.to_thread(process.start)
        return _Forked(process)

    return start


def _run(entry: Entry, arguments: Sequence[str], environment: Mapping[str, str], niceness: int) -> None:
    """In the child."""
    own_session(niceness=niceness)
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        os.dup2(supervisor.sentinel, sys.stdin.fileno())
    # before the environment changes: it finds the place of the title by that
    setproctitle.setproctitle(" ".join(("statesvc", *arguments)))
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(entry(arguments))


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


class _Forked:
    def __init__(self, process: multiprocessing.process.BaseProcess) -> None:
        if process.pid is None:
            raise RuntimeError("the process was not started")
        self._process = process
        self.pid = process.pid

    async def wait(self) -> int:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self._process.sentinel, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        await asyncio.to_thread(self._process.join)
        exit_code = self._process.exitcode
        if exit_code is None:
            raise RuntimeError("a process that was joined has not ended")
        if exit_code == FORK_SERVER_DIED:
            # the child may live, and nobody would see how it ends: it must not run next to its successor
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        return exit_code

    def signal(self, number: signal.Signals) -> None:
        if self._process.exitcode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

"""Start of a child process: forked if possible, or as a program of its own.

Forked children share the pages of loaded modules: an idle role takes a tenth of the memory. Either
child runs in a session of its own, so that a Ctrl-C in the terminal reaches the supervisor alone.
Its standard input ends when the supervisor dies, which the child takes as a request to stop.
"""

import asyncio
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import structlog

from statesvc.background.niceness import make_nicer
from statesvc.roles.shutdown import SUPERVISED_VARIABLE
from statesvc.roles.supervisor.fork_server import ForkFailedError, ForkServer

log = structlog.get_logger()


class Child(Protocol):
    @property
    def pid(self) -> int: ...

    async def wait(self) -> int:
        """Return its exit code, once it has ended; negative: the signal that ended it."""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; do nothing if it has ended."""


Start = Callable[[], Awaitable[Child]]


def spawn(command: Sequence[str], environment: Mapping[str, str], *, niceness: int = 0) -> Start:
    """Start a program. `niceness`: at least, as in `nice`."""

    async def start() -> Child:
        supervised = {**environment, SUPERVISED_VARIABLE: "1"}
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, env=supervised, start_new_session=True
        )
        if niceness:
            await asyncio.to_thread(make_nicer, process.pid, niceness=niceness)
        return _Spawned(process)

    return start


def fork(server: ForkServer, number: int, *, otherwise: Start) -> Start:
    """Fork the program of this number; `otherwise` starts it where that fails."""

    async def start() -> Child:
        try:
            return await server.fork(number)
        except ForkFailedError:
            log.error("fork_failed", pid=server.pid)  # noqa: TRY400 - there is no more to it
            return await otherwise()

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

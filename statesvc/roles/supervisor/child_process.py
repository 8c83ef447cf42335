"""One child process: started, watched, started again with growing pauses when it dies, stopped with a grace period.

It runs in a session of its own, so that a Ctrl-C in the terminal reaches the supervisor alone; its standard input is a pipe
that closes when the supervisor dies, which the child takes as a request to stop.
"""

import asyncio
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from statesvc.background.waiting import set_within
from statesvc.roles.shutdown import SUPERVISED_VARIABLE

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 15.0
HEALTHY_SECONDS: Final = 30.0
"""A child that lived that long starts again with the first pause."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildProgram:
    """What to start. `restart`: start it again when it ends."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    restart: bool = True


def pause_after(deaths: int) -> float:
    """Seconds to wait after `deaths` in a row, from 1."""
    return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(deaths - 1, 16))


class ChildProcess:
    """Keeps one program running until `stop`."""

    def __init__(self, program: ChildProgram) -> None:
        self.program = program
        self._stopping = asyncio.Event()
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        """Of the process that runs now."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def run(self) -> None:
        """Starts the program again whenever it ends; returns once stopped and ended."""
        deaths = 0
        while not self._stopping.is_set():
            started = time.monotonic()
            process = await self._start()
            exit_code = await process.wait()
            if self._stopping.is_set():
                return
            deaths = 1 if time.monotonic() - started >= HEALTHY_SECONDS else deaths + 1
            name = self.program.name
            if not self.program.restart:
                log.warning("child_ended", role=name, pid=process.pid, exit_code=exit_code)
                return
            pause = pause_after(deaths)
            log.error("child_died", role=name, pid=process.pid, exit_code=exit_code, attempt=deaths, delay_seconds=pause)
            await set_within(self._stopping, pause)

    def stop(self) -> None:
        """Asks it to stop, and starts it no more; asked a second time it stops at once."""
        self._stopping.set()
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it at once."""
        self._stopping.set()
        self._signal(signal.SIGKILL)

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            *self.program.command,
            stdin=PIPE,
            env={**self.program.environment, SUPERVISED_VARIABLE: "1"},
            start_new_session=True,
        )
        self._process = process
        # asked to stop while it was being started
        if self._stopping.is_set():
            self._signal(signal.SIGTERM)
        log.info("child_started", role=self.program.name, pid=process.pid)
        return process

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

"""A child process: watched, restarted after growing pauses, stopped with a grace period."""

import asyncio
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from statesvc.background.deaths import Death, out_of_memory_kills, record_death
from statesvc.background.waiting import cancel_fully, set_within
from statesvc.roles.supervisor.child_watch import ChildWatch
from statesvc.roles.supervisor.start_child import Child, Start

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 15.0
# A child that lived that long starts again with the first pause.
HEALTHY_SECONDS: Final = 30.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildProgram:
    """Program to start.

    `restart`: start it again when it ends; `watch`: asks whether it answers.
    """

    name: str
    start: Start
    restart: bool = True
    watch: ChildWatch | None = None
    deaths: Path | None = None
    """File that takes its deaths, for the status of the service."""
    longest_pause_seconds: float = LONGEST_PAUSE_SECONDS
    """Longest pause between a death and the next start."""


def pause_after(deaths: int, *, longest_seconds: float = LONGEST_PAUSE_SECONDS) -> float:
    """Return the seconds to wait after `deaths` in a row, from 1."""
    return min(longest_seconds, FIRST_PAUSE_SECONDS * 2.0 ** min(deaths - 1, 16))


class ChildProcess:
    """Keeps a program running until `stop`."""

    def __init__(self, program: ChildProgram) -> None:
        self.program = program
        self._stopping = asyncio.Event()
        self._running: Child | None = None

    @property
    def pid(self) -> int | None:
        return None if self._running is None else self._running.pid

    async def run(self) -> None:
        """Start the program again whenever it ends; return once stopped and ended."""
        deaths = 0
        while not self._stopping.is_set():
            started, memory_kills = time.monotonic(), out_of_memory_kills()
            try:
                child = await self._start()
            except OSError as error:
                deaths += 1
                pause = pause_after(deaths, longest_seconds=self.program.longest_pause_seconds)
                log.error(  # noqa: TRY400 - there is no more to it
                    "fork_failed", role=self.program.name, why=str(error), delay_seconds=pause
                )
                await set_within(self._stopping, pause)
                continue
            watching = asyncio.create_task(
                self._kill_when_silent(child), name=f"watch-{self.program.name}"
            )
            try:
                exit_code = await child.wait()
            finally:
                self._running = None
                await cancel_fully(watching)
            if self._stopping.is_set():
                return
            deaths = 1 if time.monotonic() - started >= HEALTHY_SECONDS else deaths + 1
            name = self.program.name
            if not self.program.restart:
                log.warning("child_ended", role=name, pid=child.pid, exit_code=exit_code)
                return
            out_of_memory = exit_code == -signal.SIGKILL and out_of_memory_kills() > memory_kills
            self._record(child.pid, exit_code, out_of_memory=out_of_memory)
            pause = pause_after(deaths, longest_seconds=self.program.longest_pause_seconds)
            log.error(
                "child_died",
                role=name,
                pid=child.pid,
                exit_code=exit_code,
                out_of_memory=out_of_memory,
                attempt=deaths,
                delay_seconds=pause,
            )
            await set_within(self._stopping, pause)

    def stop(self) -> None:
        """Ask it to stop, and do not start it again; asked a second time it stops at once."""
        # another signal the second time: two of a kind that come close together are one
        number = signal.SIGINT if self._stopping.is_set() else signal.SIGTERM
        self._stopping.set()
        self._signal(number)

    def kill(self) -> None:
        self._stopping.set()
        self._signal(signal.SIGKILL)

    def _record(self, pid: int, exit_code: int, *, out_of_memory: bool) -> None:
        if self.program.deaths is None:
            return
        death = Death(
            roles=self.program.name.split("+"),
            pid=pid,
            exit_code=exit_code,
            out_of_memory=out_of_memory,
            ended_at=time.time(),
        )
        try:
            record_death(self.program.deaths, death)
        except OSError as error:
            log.warning("death_not_recorded", role=self.program.name, error=error)

    async def _kill_when_silent(self, child: Child) -> None:
        if self.program.watch is None:
            return
        await self.program.watch.until_silent(child.pid)
        # one that stops has a deadline of its own
        if not self._stopping.is_set():
            log.error(
                "child_killed", role=self.program.name, pid=child.pid, why="it does not answer"
            )
            child.signal(signal.SIGKILL)

    async def _start(self) -> Child:
        self._running = child = await self.program.start()
        # asked to stop while it was being started
        if self._stopping.is_set():
            child.signal(signal.SIGTERM)
        log.info("child_started", role=self.program.name, pid=child.pid)
        return child

    def _signal(self, number: signal.Signals) -> None:
        if self._running is not None:
            self._running.signal(number)

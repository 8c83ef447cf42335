"""The archive of the log as a part of the role worker: it checks now and then whether a month is due.

The work itself is that of `statesvc archive log`, in a process of its own: a worker neither waits for it nor grows by it.
"""

import asyncio
import contextlib
import random
import sys
from asyncio.subprocess import DEVNULL, Process
from typing import Final

import structlog

from statesvc.background.waiting import set_within
from statesvc.database.wakeups.direct import connect_direct
from statesvc.log.archive.month_ledger import due_months
from statesvc.telemetry.metrics import Telemetry

log = structlog.get_logger()

_FIRST_SECONDS: Final = 60.0
_EVERY_SECONDS: Final = 3600.0
_COMMAND: Final = (sys.executable, "-m", "statesvc", "archive", "log")
_STOP_SECONDS: Final = 5.0


class LogArchiver:
    """Checks soon after the start and then once an hour until `stop`. Of several workers one archives, the others find it at work."""

    def __init__(self, dsn: str, *, hot_months: int, telemetry: Telemetry, command: tuple[str, ...] = _COMMAND) -> None:
        self._dsn = dsn
        self._hot_months = hot_months
        self._telemetry = telemetry
        self._command = command
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends `run`, and what it started; the next pass goes on from there."""
        self._stopping.set()

    async def run(self) -> None:
        """Goes on whatever database and disk do."""
        pause = _FIRST_SECONDS
        while not await set_within(self._stopping, pause * random.uniform(0.9, 1.1)):  # noqa: S311 - so that workers do not do it in step
            pause = _EVERY_SECONDS
            try:
                await self.once()
            except Exception:
                log.warning("log_archive_round_failed", exc_info=True)
                self._telemetry.archive_failures.add(1)

    async def once(self) -> int | None:
        """A pass where one is due, and its exit code; None: nothing is due, or it was stopped."""
        async with await connect_direct(self._dsn, application_name="statesvc log archive") as connection:
            if not await due_months(connection, hot_months=self._hot_months):
                return None
        child = await asyncio.create_subprocess_exec(*self._command, stdin=DEVNULL, stdout=DEVNULL)
        ended = asyncio.create_task(child.wait(), name="log archive")
        stopped = asyncio.create_task(self._stopping.wait(), name="log archive stop")
        try:
            await asyncio.wait([ended, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            if not ended.done():
                await _end(child)
            await ended
        if self._stopping.is_set():
            return None
        if child.returncode:
            log.warning("log_archive_round_failed", exit_code=child.returncode)
            self._telemetry.archive_failures.add(1)
        return child.returncode


async def _end(child: Process) -> None:
    """Nothing that it may be doing is half done afterwards: every step commits as a whole, files appear complete."""
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await child.wait()
        except TimeoutError:
            child.kill()

"""The archive of the log as a part of the role worker: it checks now and then whether a month is due.

The work itself is that of `statesvc archive log`, in a process of its own: a worker neither waits for it nor grows by it.
"""

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, Process
from typing import Final

import structlog

from statesvc.addons.archive.key_packing import is_packing_due
from statesvc.addons.archive.month_ledger import due_months
from statesvc.background.periodic import Periodic
from statesvc.database.session_settings import SessionLimits
from statesvc.database.wakeups.direct import connect_direct
from statesvc.telemetry.metrics import Telemetry

log = structlog.get_logger()

_FIRST_SECONDS: Final = 60.0
_EVERY_SECONDS: Final = 3600.0
_COMMAND: Final = (sys.executable, "-m", "statesvc", "archive", "log")
_STOP_SECONDS: Final = 5.0
_LIMITS: Final = SessionLimits(statement_seconds=20, lock_seconds=10)


class LogArchiver(Periodic):
    """Checks soon after the start and then once an hour until `stop`, which ends what it started: the next pass goes on from there.

    Of several workers one archives, the others find it at work.
    """

    def __init__(
        self,
        dsn: str,
        *,
        hot_months: int,
        telemetry: Telemetry,
        command: tuple[str, ...] = _COMMAND,
    ) -> None:
        super().__init__(
            "log archiver",
            self._pass,
            first_seconds=_FIRST_SECONDS,
            every_seconds=_EVERY_SECONDS,
            retry_seconds=_EVERY_SECONDS,
            jitter=0.1,
        )
        self._dsn = dsn
        self._hot_months = hot_months
        self._telemetry = telemetry
        self._command = command

    async def _pass(self) -> None:
        try:
            await self.once()
        except Exception:
            self._telemetry.archive_failures.add(1)
            raise

    async def once(self) -> int | None:
        """Run a pass where one is due, and return its exit code; None: nothing is due, or it was stopped."""
        async with await connect_direct(
            self._dsn, application_name="statesvc log archive", limits=_LIMITS
        ) as connection:
            if not await due_months(
                connection, hot_months=self._hot_months
            ) and not await is_packing_due(connection):
                return None
        child = await asyncio.create_subprocess_exec(*self._command, stdin=DEVNULL, stdout=DEVNULL)
        ended = asyncio.create_task(child.wait(), name="log archive")
        stopped = asyncio.create_task(self.stopping.wait(), name="log archive stop")
        try:
            await asyncio.wait([ended, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            if not ended.done():
                await _end(child)
            await ended
        if self.stopping.is_set():
            return None
        if child.returncode:
            log.warning("log_archive_pass_failed", exit_code=child.returncode)
            self._telemetry.archive_failures.add(1)
        return child.returncode


async def _end(child: Process) -> None:
    """End the child; nothing is half done afterwards: every step commits as a whole, files appear complete."""
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await child.wait()
        except TimeoutError:
            child.kill()

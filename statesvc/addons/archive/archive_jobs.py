"""The archives as parts of the role worker."""

import asyncio
import contextlib
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from typing import Final

import structlog

from events.crypto.keyring import Keyring
from statesvc.addons.archive.day import BODY_LEDGER
from statesvc.addons.archive.day_pass import BodyArchiving, DayPassResult, archive_days
from statesvc.addons.archive.month import due_months, is_packing_due
from statesvc.background.periodic import Periodic
from statesvc.background.waiting import set_within
from statesvc.database.session_settings import SessionLimits
from statesvc.database.wakeups.wakeup import connect_direct
from statesvc.files.archive_folder import ArchivePath, archive_folder
from statesvc.roles.runtime import Launch, Runtime
from statesvc.roles.shutdown import Component
from statesvc.settings.service_settings import ArchiveSettings
from statesvc.telemetry.metrics import Telemetry

log = structlog.get_logger()

_EVERY_SECONDS: Final = 3600.0
_AGAIN_SECONDS: Final = 300.0
_BODIES_FIRST_SECONDS: Final = 30.0
_BODIES_LIMITS: Final = SessionLimits(
    statement_seconds=600, lock_seconds=2, idle_in_transaction_seconds=60
)
_LOG_FIRST_SECONDS: Final = 60.0
_LOG_LIMITS: Final = SessionLimits(statement_seconds=20, lock_seconds=10)
_LOG_COMMAND: Final = (sys.executable, "-m", "statesvc", "archive", "log")
_STOP_SECONDS: Final = 5.0


class LogArchiver(Periodic):
    """Starts `statesvc archive log` once an hour if a month is due, in its own process.

    So the worker's memory does not grow. `stop` ends that process; the next pass continues. Of
    several workers only one archives.
    """

    def __init__(
        self,
        dsn: str,
        *,
        hot_months: int,
        telemetry: Telemetry,
        command: tuple[str, ...] = _LOG_COMMAND,
    ) -> None:
        super().__init__(
            "log archiver",
            self._pass,
            first_seconds=_LOG_FIRST_SECONDS,
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
        """Run a due pass and return its exit code; None: none is due, or it was stopped."""
        async with await connect_direct(
            self._dsn, application_name="statesvc log archive", limits=_LOG_LIMITS
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
    """End the child.

    Every step commits as a whole and files appear complete, so no step is left half done.
    """
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await child.wait()
        except TimeoutError:
            child.kill()


class _StoppedError(Exception):
    """Stopped between two batches."""


class BodyArchiver(Periodic):
    """Archives bodies once an hour until `stop`, which ends it after the batch in progress.

    It rests for as long as it works, so that it slows the other work of its process little.
    """

    def __init__(
        self,
        dsn: str,
        *,
        folder: ArchivePath,
        keyring: Keyring,
        settings: ArchiveSettings,
        telemetry: Telemetry,
    ) -> None:
        super().__init__(
            "body archiver",
            self._pass,
            first_seconds=_BODIES_FIRST_SECONDS,
            every_seconds=_EVERY_SECONDS,
            retry_seconds=_AGAIN_SECONDS,
            jitter=0.1,
        )
        self._dsn = dsn
        self._telemetry = telemetry
        self._worked_since = time.monotonic()
        self._archiving = BodyArchiving(
            folder=folder,
            keyring=keyring,
            hot_days=settings.hot_days,
            keep_months=settings.keep_months,
            pause=self._rest,
        )

    async def _pass(self) -> float | None:
        """Run a pass; failed and busy periods are tried again soon."""
        try:
            outcome = await self.once()
        except _StoppedError:
            return None
        except Exception:
            self._telemetry.archive_failures.add(1)
            raise
        return (
            _AGAIN_SECONDS
            if outcome is not None and (outcome.refused or outcome.failed or outcome.busy)
            else None
        )

    async def once(self) -> DayPassResult | None:
        """Run a pass; return None where another worker leads."""
        async with await connect_direct(
            self._dsn, application_name="statesvc archive", limits=_BODIES_LIMITS
        ) as connection:
            if not await BODY_LEDGER.try_lead(connection):
                return None
            self._worked_since = time.monotonic()
            outcome = await archive_days(connection, self._archiving)
        self._telemetry.archived_bodies.add(outcome.bodies)
        if failures := len(outcome.failed) + len(outcome.faults) + (outcome.refused is not None):
            self._telemetry.archive_failures.add(failures)
        return outcome

    async def _rest(self) -> None:
        """Rest for as long as the last batch took."""
        if await set_within(self.stopping, time.monotonic() - self._worked_since):
            raise _StoppedError
        self._worked_since = time.monotonic()


def archive_jobs(launch: Launch, base: Runtime) -> list[Component]:
    """Return the jobs that archive bodies and, if configured, months of the log."""
    settings = launch.settings
    folder = archive_folder(settings)
    if folder is None:
        return []
    bodies = BodyArchiver(
        base.dsns.listen,
        folder=folder,
        keyring=base.keyring,
        settings=settings.archive,
        telemetry=base.telemetry,
    )
    jobs = [Component(name="archiver", run=bodies.run, stop=bodies.stop)]
    if settings.archive.log_hot_months is not None:
        months = LogArchiver(
            base.dsns.listen,
            hot_months=settings.archive.log_hot_months,
            telemetry=base.telemetry,
        )
        jobs.append(Component(name="log archiver", run=months.run, stop=months.stop))
    return jobs

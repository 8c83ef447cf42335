"""The archiver as a part of the role worker: a pass now and then, by whichever worker leads.

It has a connection of its own, past any pooler: the lead is a lock of its session. It works as long as it rests, so that a day of
bodies costs the other work of its process little.
"""

import asyncio
import random
import time
from pathlib import Path
from typing import Final

import structlog

from events.crypto.keyring import Keyring
from statesvc.background.waiting import set_within
from statesvc.bodies.day_ledger import BODY_LEDGER
from statesvc.bodies.day_pass import BodyArchiving, DayPassResult, archive_days
from statesvc.database.wakeups.direct import connect_direct
from statesvc.settings.service_settings import ArchiveSettings
from statesvc.telemetry.metrics import Telemetry

log = structlog.get_logger()

_FIRST_SECONDS: Final = 30.0
_EVERY_SECONDS: Final = 3600.0
_AGAIN_SECONDS: Final = 300.0


class _StoppedError(Exception):
    """Between two batches, by `stop`."""


class BodyArchiver:
    """Runs soon after the start and then once an hour until `stop`."""

    def __init__(self, dsn: str, *, folder: Path, keyring: Keyring, settings: ArchiveSettings, telemetry: Telemetry) -> None:
        self._dsn = dsn
        self._telemetry = telemetry
        self._stopping = asyncio.Event()
        self._worked_since = time.monotonic()
        self._archiving = BodyArchiving(
            folder=folder, keyring=keyring, hot_days=settings.hot_days, keep_months=settings.keep_months, pause=self._rest
        )

    def stop(self) -> None:
        """Ends `run` after the batch in progress; the next pass goes on from there."""
        self._stopping.set()

    async def run(self) -> None:
        """Goes on whatever database and disk do; a failed pass is tried again soon."""
        pause = _FIRST_SECONDS
        while not await set_within(self._stopping, pause * random.uniform(0.9, 1.1)):  # noqa: S311 - so that workers do not do it in step
            pause = _EVERY_SECONDS
            try:
                outcome = await self.once()
            except _StoppedError:
                return
            except Exception:
                log.warning("archive_round_failed", exc_info=True)
                self._telemetry.archive_failures.add(1)
                pause = _AGAIN_SECONDS
            else:
                if outcome is not None and (outcome.failed or outcome.busy):
                    pause = _AGAIN_SECONDS

    async def once(self) -> DayPassResult | None:
        """A pass; None: another worker leads."""
        async with await connect_direct(self._dsn, application_name="statesvc archive") as connection:
            if not await BODY_LEDGER.try_lead(connection):
                return None
            self._worked_since = time.monotonic()
            outcome = await archive_days(connection, self._archiving)
        self._telemetry.archived_bodies.add(outcome.bodies)
        if failures := len(outcome.failed) + len(outcome.faults):
            self._telemetry.archive_failures.add(failures)
        return outcome

    async def _rest(self) -> None:
        """As long as the batch before took."""
        if await set_within(self._stopping, time.monotonic() - self._worked_since):
            raise _StoppedError
        self._worked_since = time.monotonic()

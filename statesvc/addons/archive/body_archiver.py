"""The archiver as a part of the role worker: a pass now and then, by whichever worker leads.

It has a connection of its own, past any pooler: the lead is a lock of its session. It rests for as long as it works, so that it slows the
other work of its process little.
"""

import time
from typing import Final

from events.crypto.keyring import Keyring
from statesvc.addons.archive.day_ledger import BODY_LEDGER
from statesvc.addons.archive.day_pass import BodyArchiving, DayPassResult, archive_days
from statesvc.background.periodic import Periodic
from statesvc.background.waiting import set_within
from statesvc.database.session_settings import SessionLimits
from statesvc.database.wakeups.direct import connect_direct
from statesvc.files.archive_folder import ArchivePath
from statesvc.settings.service_settings import ArchiveSettings
from statesvc.telemetry.metrics import Telemetry

_FIRST_SECONDS: Final = 30.0
_EVERY_SECONDS: Final = 3600.0
_AGAIN_SECONDS: Final = 300.0
_LIMITS: Final = SessionLimits(
    statement_seconds=600, lock_seconds=2, idle_in_transaction_seconds=60
)


class _StoppedError(Exception):
    """Between two batches, by `stop`."""


class BodyArchiver(Periodic):
    """Runs soon after the start and then once an hour until `stop`, which ends it after the batch in progress."""

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
            first_seconds=_FIRST_SECONDS,
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
        """Run a pass; what failed, or was busy, is tried again soon."""
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
            self._dsn, application_name="statesvc archive", limits=_LIMITS
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
        """Rest as long as the batch before took."""
        if await set_within(self.stopping, time.monotonic() - self._worked_since):
            raise _StoppedError
        self._worked_since = time.monotonic()

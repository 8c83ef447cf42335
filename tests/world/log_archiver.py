"""A log of two months with entries of all five kinds, and rounds of the archiver."""

from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.entry.kinds import EntryName
from events.identity.ids import shipment_id
from events.spelling import normalize_number
from statesvc.addons.archive.archive_identity import MARKER
from statesvc.addons.archive.month import LOG_LEDGER
from statesvc.addons.archive.month_pass import LogArchiving, MonthPassResult, archive_months
from statesvc.addons.expectations.awaited_numbers import await_number
from statesvc.addons.expectations.watcher import observe_never_heard
from statesvc.addons.verify.verify_log import VerificationReport
from statesvc.files.archive_folder import ArchivePath, files_of
from statesvc.log.history import History
from statesvc.log.log_months import LogMonth, months
from statesvc.shipments.references import AttachedTo
from tests.world.attack import verify
from tests.world.database import Database
from tests.world.log_builder import LogBuilder, scan
from tests.world.waiting import until

DAY = 86_400
KINDS = tuple(EntryName)
OLD = ("1Z0001", "1Z0002", "1Z0003")
"""Said of in the first month alone, but for 1Z0003."""
SILENT = "1Z0404"
"""Awaited in the first month; nothing is ever heard of it."""


@dataclass
class Archiver:
    """Lets months pass, and archives. `connection` is the service's role."""

    database: Database
    log: LogBuilder
    archiving: LogArchiving

    @property
    def connection(self) -> AsyncConnection[Any]:
        return self.log.connection

    @property
    def folder(self) -> Path:
        folder = self.archiving.folder
        assert isinstance(folder, Path)
        return folder

    @property
    def archive(self) -> History:
        """The archive as a process that starts now has it."""
        return History(self.archiving.folder)

    async def two_months(self) -> None:
        """Make two months: the first one is over since its hot month; the second one is hot."""
        await self.middle_of_month()
        await self.log.everything()
        await self.log.act(f"shipment {shipment('1Z0001')}")
        await self.never_heard(SILENT)
        await self.log.seal()
        await self.pass_days(30)
        await self.log.parcel("1Z0007")
        await self.log.append(scan("1Z0003", 60, None))
        await self.log.conflict("1Z0007")
        await self.log.attempt()
        await self.log.act()
        await self.log.seal()
        await self.pass_days(30)

    async def never_heard(self, number: str) -> None:
        """Await a number of which nothing is said, until that is observed."""
        await await_number(self.connection, AttachedTo("ups", number), 1, actor="shop", why={})
        await self.pass_days(1 / 12)
        assert (
            len((await observe_never_heard(self.connection, worker="worker-1")).observations) == 1
        )

    async def middle_of_month(self) -> None:
        """Pass the days until the next 10th: then 30 days later it is the next month, on any day of
        the tests.
        """
        now = await self.database.clock.now()
        await self.pass_days(next(n for n in range(32) if (now + timedelta(n)).day == 10))

    async def pass_days(self, days: float) -> None:
        await self.database.clock.advance(days * DAY)

    async def notice(self, _seconds: float) -> None:
        """End the notice of a month."""
        await self.database.clock.advance(60)

    async def run_pass(self, **changes: Any) -> MonthPassResult:
        """Run a pass by a process of its own that leads."""
        async with await AsyncConnection.connect(
            self.database.service_dsn, autocommit=True
        ) as connection:
            # the session of the pass before may still be ending
            # another process decides
            await until(lambda: LOG_LEDGER.try_lead(connection))
            return await archive_months(connection, replace(self.archiving, **changes))

    async def archived(self) -> LogMonth:
        """Return the first month, archived."""
        outcome = await self.run_pass()
        assert len(outcome.archived) == 1, outcome
        assert not outcome.failed
        return (await self.ledger())[outcome.archived[0]]

    async def ledger(self) -> dict[date, LogMonth]:
        return {month.month: month for month in await months(self.connection)}

    async def counts(self) -> dict[str, int]:
        """Return the entries in the database by kind."""
        return {
            kind: (await self.log.rows(f"SELECT count(*) FROM statesvc.{kind}"))[0][0]
            for kind in KINDS
        }

    async def residents(self) -> dict[UUID, str]:
        return dict(await self.log.rows("SELECT shipment_id, why FROM statesvc.log_resident"))

    def files(self) -> list[str]:
        """Return the files without the marker."""
        return sorted(
            path.name
            for path in files_of(self.archiving.folder)
            if not path.name.startswith(MARKER)
        )

    def verify(self, **options: Any) -> VerificationReport:
        return verify(self.database, archive=self.archiving.folder, **options)

    async def as_owner(self, *statements: str) -> None:
        async with await AsyncConnection.connect(
            self.database.owner_dsn, autocommit=True
        ) as connection:
            for statement in statements:
                await connection.execute(statement.encode())


def archiving(folder: ArchivePath, keyring: Keyring, archiver_wait: Any) -> LogArchiving:
    return LogArchiving(
        folder=folder, keyring=keyring, hot_months=1, wait=archiver_wait, drop_tries=1
    )


def shipment(number: str) -> UUID:
    return shipment_id("ups", normalize_number(number), "")

"""A worker whose days pass, an archive folder, and rounds of the archiver."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring, body_context, body_key_wrap
from events.crypto.sealing import unsalted
from statesvc.addons.archive.archive_identity import MARKER
from statesvc.addons.archive.day import BODY_LEDGER, DayRecord, archives
from statesvc.addons.archive.day_pass import BodyArchiving, DayPassResult, archive_days
from statesvc.bodies.find_bodies import BodyLocation, body_locations, find_bodies
from tests.world.database import Database
from tests.world.waiting import until
from tests.world.worker_harness import WorkerHarness

DAY = 86_400
HOT_DAYS = 14
KEEP_MONTHS = 25


async def no_pause() -> None:
    """Rest not at all."""


@dataclass
class Archiver:
    """Lets days pass, and archives."""

    harness: WorkerHarness
    archiving: BodyArchiving
    owner_dsn: str
    service_dsn: str

    @property
    def folder(self) -> Path:
        folder = self.archiving.folder
        assert isinstance(folder, Path)
        return folder

    async def days_pass(self, days: int) -> None:
        await self.harness.database.clock.advance(days * DAY)

    async def today(self) -> date:
        now: datetime = await self.harness.database.clock.now()
        return now.astimezone(UTC).date()

    async def run_pass(self, **changes: Any) -> DayPassResult:
        """Run a pass by a process of its own that leads."""
        async with await AsyncConnection.connect(self.service_dsn, autocommit=True) as connection:
            # the session of the pass before may still be ending
            # another process decides
            await until(lambda: BODY_LEDGER.try_lead(connection))
            return await archive_days(connection, replace(self.archiving, **changes))

    async def ledger(self) -> dict[date, DayRecord]:
        return {archive.day: archive for archive in await archives(self.harness.connection)}

    async def partition(self, day: date) -> str | None:
        """Return its name while it is there."""
        name: str | None = await self.harness.value(
            "SELECT to_regclass(%s)::text", f"statesvc.body_{day:%Y%m%d}"
        )
        return name

    async def retained(self) -> set[UUID]:
        return {
            message_id
            for (message_id,) in await self.harness.rows(
                "SELECT message_id FROM statesvc.body_retained"
            )
        }

    async def erase(self, shipment_id: UUID) -> None:
        """Destroy the shipment's key."""
        await self.harness.as_owner(
            "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock() WHERE"
            f" shipment_id = '{shipment_id}'"
        )

    async def body(self, message_id: UUID) -> bytes | None:
        """Return the clear body wherever it is, opened with the key of its shipment."""
        harness = self.harness
        wanted = [(message_id, await self._received_at(message_id))]
        found = (await find_bodies(harness.connection, self.archiving.folder, wanted)).get(
            message_id
        )
        if found is None:
            return None
        ((sealed_key, shipments),) = await harness.rows(
            "SELECT sealed_key, shipments FROM statesvc.message WHERE message_id = %s", message_id
        )
        if sealed_key is None:
            return None
        keys = {}
        for shipment_id in shipments:
            wrapped = await harness.value(
                "SELECT sealed_key FROM statesvc.stream WHERE shipment_id = %s", shipment_id
            )
            if wrapped is None:
                return None
            keys[shipment_id] = harness.keyring.open_shipment_key(wrapped, shipment_id)
        wrap = body_key_wrap(keys, message_id) if shipments else harness.keyring.inbox
        key = wrap.unwrap(sealed_key, body_context(message_id))
        return unsalted(key.open(found.sealed, body_context(message_id)))

    async def place(self, message_id: UUID) -> BodyLocation:
        wanted = [(message_id, await self._received_at(message_id))]
        return (await body_locations(self.harness.connection, wanted))[message_id]

    async def _received_at(self, message_id: UUID) -> Any:
        found = await self.harness.rows(
            "SELECT received_at FROM statesvc.message WHERE message_id = %s"
            " UNION ALL SELECT received_at FROM statesvc.inbox WHERE message_id = %s"
            " UNION ALL SELECT received_at FROM statesvc.dead_letter WHERE message_id = %s",
            *[message_id] * 3,
        )
        return found[0][0]

    def files(self) -> list[str]:
        """Return the files without the marker."""
        names = (path.name for path in self.folder.iterdir()) if self.folder.is_dir() else ()
        return sorted(name for name in names if not name.startswith(MARKER))

    async def archived(self, **changes: Any) -> date:
        """Let today get old, and archive it."""
        today = await self.today()
        await self.days_pass(HOT_DAYS + 1)
        outcome = await self.run_pass(**changes)
        assert today in outcome.archived, outcome
        return today


def body_archiving(folder: Path, keyring: Keyring) -> BodyArchiving:
    return BodyArchiving(
        folder=folder,
        keyring=keyring,
        hot_days=HOT_DAYS,
        keep_months=KEEP_MONTHS,
        pause=no_pause,
        drop_tries=1,
    )


@pytest.fixture
async def archiver(harness: WorkerHarness, database: Database, tmp_path: Path) -> Archiver:
    archiving = body_archiving(tmp_path / "archive", harness.keyring)
    return Archiver(harness, archiving, database.owner_dsn, database.service_dsn)

"""An archiver each, and a served API on the same database and folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from statesvc.files.archive_folder import archive_at
from statesvc.log import history as reading
from tests.world.database import Database
from tests.world.log_archiver import Archiver, archiving
from tests.world.log_builder import log_builder
from tests.world.postgres import fill_database


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pass no minute of notice here: what was archived is known at once."""
    monkeypatch.setattr(reading, "_AGAIN_SECONDS", 0.0)


@pytest.fixture
async def two_months(database: Database) -> None:
    """Make what `Archiver.two_months` makes before anybody connects.

    Written once a run and copied: it takes a second of computing.
    """

    async def write(name: str) -> None:
        filled = database.on(name)
        async with log_builder(filled) as log:
            await Archiver(filled, log, archiving(Path(), log.keyring, None)).two_months()

    await fill_database(database.superuser_dsn, "two_months", write)


@pytest.fixture
def archive_place(tmp_path: Path) -> str:
    """Return where the archive is, as a setting names it."""
    return str(tmp_path / "archive")


@pytest.fixture
async def archiver(
    own_processes: None,  # noqa: ARG001 - months are written and read by processes of their own
    database: Database,
    archive_place: str,
) -> AsyncIterator[Archiver]:
    async def wait(_seconds: float) -> None:
        await database.clock.advance(60)

    async with log_builder(database) as log:
        yield Archiver(database, log, archiving(archive_at(archive_place), log.keyring, wait))

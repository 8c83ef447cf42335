"""An archivist each, and a served API on the same database and folder."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from statesvc.log.archive import log_archive as reading
from tests.world.log_archivist import Archivist, archiving
from tests.world.story import story


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No minute of notice passes here: what was archived is known at once."""
    monkeypatch.setattr(reading, "_AGAIN_SECONDS", 0.0)


@pytest.fixture
async def archivist(database: Any, tmp_path: Path) -> AsyncIterator[Archivist]:
    async def wait(_seconds: float) -> None:
        await database.clock.advance(60)

    async with story(database) as log:
        yield Archivist(database, log, archiving(tmp_path / "archive", log.keyring, wait))

"""`statesvc log fork`, and what `erase` says of a restore.

A whole restore: tests/acceptance/test_restore.py.
"""

from pathlib import Path

import pytest

from statesvc.sealer.leadership import Publication
from tests.world.database import Database
from tests.world.log_builder import log_builder
from tests.world.shell import Shell


async def test_a_log_that_lost_nothing_is_not_forked(
    database: Database, here: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no place with published heads is configured" in await here(
        "log", "fork", "--why", "a test", exit_code=1
    )
    monkeypatch.setenv("STATESVC_SEALER_CHECKPOINT_FILE", str(tmp_path / "checkpoint"))
    async with log_builder(
        database, Publication(file=tmp_path / "checkpoint", origin="log.example/tests")
    ) as log:
        await log.act()
        await log.seal()
    assert "nothing that was published is missing" in await here(
        "log", "fork", "--why", "a test", exit_code=1
    )
    assert "--why must say why" in await here("log", "fork", "--why", " ", exit_code=2)


async def test_erase_says_whether_a_restore_would_undo_it(
    here: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "A RESTORE FROM A BACKUP WOULD UNDO IT" in await here(
        "erase", "ups", "1Z1", "--why", "a test"
    )
    monkeypatch.setenv("STATESVC_CHECKPOINT_PUBLISH", str(tmp_path))
    answer = await here.json("erase", "ups", "1Z1", "--why", "a test", "--json")
    assert answer["tombstones"] == [f"{tmp_path}/tombstones"]
    assert len(list((tmp_path / "tombstones").iterdir())) == 1
    (tmp_path / "tombstones").rename(tmp_path / "away")
    (tmp_path / "tombstones").write_text("no folder")
    assert "a restore would undo it" in await here(
        "erase", "ups", "1Z2", "--why", "a test", exit_code=1
    )

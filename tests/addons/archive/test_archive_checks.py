"""Findings of doctor about the archive."""

import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from statesvc.addons.archive.archive_checks import check_archives
from statesvc.addons.archive.day import note_checked
from statesvc.health.finding import Finding, Urgency
from statesvc.settings.service_settings import load_settings
from tests.world.body_archiver import HOT_DAYS, Archiver


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, archiver: Archiver) -> None:
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(archiver.folder))


async def told(archiver: Archiver) -> list[Finding]:
    return [
        finding async for finding in check_archives(archiver.harness.connection, load_settings())
    ]


async def failures(archiver: Archiver) -> str:
    return "\n".join(
        finding.text for finding in await told(archiver) if finding.urgency is Urgency.NOW
    )


async def archived_file(archiver: Archiver) -> tuple[date, Path]:
    await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.archived()
    return day, archiver.folder / str((await archiver.ledger())[day].file_name)


async def test_without_a_folder_archiving_is_off_and_doctor_says_so(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATESVC_ARCHIVE_DIR")
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@nowhere/none")
    (finding,) = await told(archiver)
    assert (finding.urgency, finding.text.startswith("off:")) == (Urgency.HUMAN, True)
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(archiver.folder))
    await archived_file(archiver)
    monkeypatch.delenv("STATESVC_ARCHIVE_DIR")
    assert "can't be read" in await failures(archiver)


async def test_the_embedded_server_archives_beside_its_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, archiver: Archiver
) -> None:
    monkeypatch.delenv("STATESVC_ARCHIVE_DIR")
    monkeypatch.setenv("STATESVC_DATA_DIR", str(tmp_path))
    assert archiver.folder == tmp_path / "archive"
    await archived_file(archiver)
    assert await failures(archiver) == ""


async def test_a_missing_a_shortened_and_an_altered_file_are_named(archiver: Archiver) -> None:
    day, path = await archived_file(archiver)
    whole = path.read_bytes()
    path.unlink()
    assert f"{path.name}: it is missing" in await failures(archiver)
    path.write_bytes(whole[:-1])
    assert "bytes, not" in await failures(archiver)
    path.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
    await note_checked(archiver.harness.connection, day, fault="the digest differs")
    assert "the digest differs" in await failures(archiver)
    path.write_bytes(whole)
    await note_checked(archiver.harness.connection, day, fault=None)
    assert await failures(archiver) == ""
    assert day == date.fromisoformat(path.name[7:17])


async def test_a_day_that_failed_or_is_overdue_is_named(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # marks the folder
    await archiver.run_pass()
    await archiver.days_pass(HOT_DAYS + 4)
    assert "overdue" in await failures(archiver)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        await archiver.run_pass()
    texts = [finding.text for finding in await told(archiver)]
    assert any("days cannot be archived" in text for text in texts), texts
    await archiver.run_pass()
    assert await failures(archiver) == ""

"""Findings of doctor about the archive."""

import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from statesvc.addons.archive.archive_checks import check_body_archive
from statesvc.health.finding import Finding, Urgency
from statesvc.settings.service_settings import load_settings
from tests.world.body_archivist import HOT_DAYS, Archivist


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, archivist: Archivist) -> None:
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(archivist.folder))


async def told(archivist: Archivist) -> list[Finding]:
    return [
        finding async for finding in check_body_archive(archivist.shop.connection, load_settings())
    ]


async def failures(archivist: Archivist) -> str:
    return "\n".join(
        finding.text for finding in await told(archivist) if finding.urgency is Urgency.NOW
    )


async def archived_file(archivist: Archivist) -> tuple[date, Path]:
    await archivist.shop.say({"number": "A1", "status": "in_transit"})
    day = await archivist.archived()
    return day, archivist.folder / str((await archivist.ledger())[day].file_name)


async def test_a_good_archive_is_said_to_be_good(archivist: Archivist) -> None:
    assert [finding.text for finding in await told(archivist)] == ["nothing was old enough yet"]
    day, _ = await archived_file(archivist)
    texts = [finding.text for finding in await told(archivist)]
    assert texts[0].startswith(f"up to {day}")
    assert "files are there" in texts[-1]
    assert await failures(archivist) == ""


async def test_without_a_folder_archiving_is_off_and_doctor_says_so(
    archivist: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATESVC_ARCHIVE_DIR")
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@nowhere/none")
    (finding,) = await told(archivist)
    assert (finding.urgency, finding.text.startswith("off:")) == (Urgency.HUMAN, True)
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(archivist.folder))
    await archived_file(archivist)
    monkeypatch.delenv("STATESVC_ARCHIVE_DIR")
    assert "cannot be read" in await failures(archivist)


async def test_the_embedded_server_archives_beside_its_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, archivist: Archivist
) -> None:
    monkeypatch.delenv("STATESVC_ARCHIVE_DIR")
    monkeypatch.setenv("STATESVC_DATA_DIR", str(tmp_path))
    assert archivist.folder == tmp_path / "archive"
    await archived_file(archivist)
    assert await failures(archivist) == ""


async def test_a_missing_a_shortened_and_an_altered_file_are_named(archivist: Archivist) -> None:
    day, path = await archived_file(archivist)
    whole = path.read_bytes()
    path.unlink()
    assert f"{path.name}: it is missing" in await failures(archivist)
    path.write_bytes(whole[:-1])
    assert "bytes, not" in await failures(archivist)
    path.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
    assert "digest differs" in await failures(archivist)
    path.write_bytes(whole)
    assert await failures(archivist) == ""
    assert day == date.fromisoformat(path.name[7:17])


async def test_a_day_that_failed_or_is_overdue_is_named(
    archivist: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = await archivist.today()
    # marks the folder
    await archivist.run_pass()
    await archivist.days_pass(HOT_DAYS + 4)
    assert "overdue" in await failures(archivist)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        await archivist.run_pass()
    assert f"{day} failed 1 times" in await failures(archivist)
    await archivist.run_pass()
    assert await failures(archivist) == ""

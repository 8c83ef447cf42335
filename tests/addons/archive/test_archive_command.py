"""The command and doctor: killed at any moment, nothing is lost and the next run goes on; what is
wrong with files and days is named.
"""

import asyncio
import os
import random
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from statesvc.addons.archive.archive_checks import check_archives
from statesvc.addons.archive.archive_file import ArchiveReader
from statesvc.addons.archive.day import note_checked
from statesvc.health.finding import Finding, Urgency
from statesvc.settings.service_settings import load_settings
from tests.world.body_archiver import HOT_DAYS, Archiver
from tests.world.forked import ForkedProcess, fork
from tests.world.shell import Shell, use
from tests.world.worker_harness import push_body

BODIES = 1500


@pytest.fixture(autouse=True)
def _environment(database: Any, monkeypatch: pytest.MonkeyPatch, archiver: Archiver) -> None:
    use(database, monkeypatch)
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(archiver.folder))


async def run(archiver: Archiver) -> ForkedProcess:
    printed = archiver.folder.with_name("printed")
    return await fork(
        "statesvc.__main__", ("archive", "run"), environment=os.environ, output=printed
    )


@pytest.mark.usefixtures("own_processes")
async def test_killed_at_any_moment_the_next_run_finishes_and_nothing_is_lost(
    archiver: Archiver,
) -> None:
    message_ids = await archiver.harness.push(
        *(
            push_body({"number": f"N{n % 50}", "status": "in_transit"}, envelope=n)
            for n in range(BODIES)
        )
    )
    await archiver.harness.work(limit=512)
    day = await archiver.today()
    await archiver.days_pass(HOT_DAYS + 1)
    for _ in range(6):
        process = await run(archiver)
        await asyncio.sleep(random.uniform(0.05, 0.8))
        if process.returncode is None:
            process.kill()
        await process.wait()
        hot = await archiver.harness.value("SELECT count(*) FROM statesvc.body")
        row = (await archiver.ledger()).get(day)
        assert hot == BODIES or (row is not None and row.verified_at is not None)
    async with asyncio.timeout(60):
        # the server needs a moment to notice that the last one is dead
        while await (await run(archiver)).wait():  # noqa: ASYNC110 - asks another process
            await asyncio.sleep(0.1)
    row = (await archiver.ledger())[day]
    assert (row.bodies, row.compressed, await archiver.partition(day)) == (BODIES, BODIES, None)
    with ArchiveReader(archiver.folder / str(row.file_name)) as reader:
        assert [record.message_id for record in reader] == sorted(message_ids)
    assert archiver.files() == sorted(
        str(each.file_name) for each in (await archiver.ledger()).values()
    )


async def test_days_are_listed_and_files_verified(archiver: Archiver, shell: Shell) -> None:
    assert "nothing was archived yet" in await shell("archive", "list")
    await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.today()
    await archiver.days_pass(HOT_DAYS + 1)
    assert "with 1 bodies" in await shell("archive", "run")
    listed = {each["day"]: each for each in await shell.json("archive", "list")}
    assert (listed[day.isoformat()]["bodies"], listed[day.isoformat()]["fault"]) == (1, None)
    assert "archived" in await shell("archive", "list")
    assert "0 files missing or altered" in await shell("archive", "verify")
    await asyncio.to_thread((archiver.folder / listed[day.isoformat()]["file_name"]).unlink)
    assert "it is missing" in await shell("archive", "verify", exit_code=1)
    assert "FAULTY" in await shell("archive", "list")


async def test_without_a_folder_there_is_nothing_to_do(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATESVC_ARCHIVE_DIR")
    assert "there is no archive" in await shell("archive", "run", exit_code=2)


async def test_a_missing_file_stops_archiving_until_it_is_back_or_given_up(
    archiver: Archiver, shell: Shell
) -> None:
    await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.archived()
    file = archiver.folder / str((await archiver.ledger())[day].file_name)
    assert "is there as it was written" in await shell(
        "archive", "lost", file.name, "--why", "a mistake", exit_code=1
    )
    content = file.read_bytes()
    file.unlink()
    await archiver.days_pass(1)
    printed = await shell("archive", "run", exit_code=1)
    assert "0 days archived with 0 bodies" in printed
    assert f"REFUSED, nothing leaves the database: {archiver.folder}" in printed
    assert "is missing" in printed
    assert "nothing leaves the database" in await shell("status", exit_code=1)
    assert "no archived file" in await shell(
        "archive", "lost", "other.ssb", "--why", "x", exit_code=1
    )
    assert "is given up (it is missing)" in await shell(
        "archive", "lost", file.name, "--why", "the disk died"
    )
    assert "REFUSED" not in await shell("archive", "run")
    assert "LOST" in await shell("archive", "list")
    why = (
        "SELECT convert_from(canonical, 'UTF8')::jsonb #>> '{details,why}' FROM statesvc.action"
        " WHERE verb = 'archive.lost'"
    )
    assert await archiver.harness.rows(why) == [("the disk died",)]
    # what turns up after all is read as before
    file.write_bytes(content)
    assert "REFUSED" not in await shell("archive", "run")


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
    monkeypatch.delenv("DATABASE_URL")
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

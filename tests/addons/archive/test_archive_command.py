"""The command, in processes of its own: killed at any moment, it loses nothing and the next one
goes on.
"""

import asyncio
import os
import random
from typing import Any

import pytest

from statesvc.addons.archive.archive_file import ArchiveReader
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

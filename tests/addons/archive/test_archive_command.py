"""The command, in processes of its own: killed at any moment, it loses nothing and the next one
goes on.
"""

import asyncio
import base64
from typing import Any

import pytest

from tests.world.body_archivist import HOT_DAYS, Archivist
from tests.world.shell import Shell, use


@pytest.fixture(autouse=True)
def _environment(database: Any, monkeypatch: pytest.MonkeyPatch, archivist: Archivist) -> None:
    use(database, monkeypatch)
    monkeypatch.setenv("STATESVC_MASTER_KEY", base64.b64encode(bytes(range(32))).decode())
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(archivist.folder))


async def test_days_are_listed_and_files_verified(archivist: Archivist, shell: Shell) -> None:
    assert "nothing was archived yet" in await shell("archive", "list")
    await archivist.shop.say({"number": "A1", "status": "in_transit"})
    day = await archivist.today()
    await archivist.days_pass(HOT_DAYS + 1)
    assert "with 1 bodies" in await shell("archive", "run")
    listed = {each["day"]: each for each in await shell.json("archive", "list")}
    assert (listed[day.isoformat()]["bodies"], listed[day.isoformat()]["fault"]) == (1, None)
    assert "archived" in await shell("archive", "list")
    assert "0 files missing or altered" in await shell("archive", "verify")
    await asyncio.to_thread((archivist.folder / listed[day.isoformat()]["file_name"]).unlink)
    assert "it is missing" in await shell("archive", "verify", exit_code=1)
    assert "FAULTY" in await shell("archive", "list")


async def test_without_a_folder_there_is_nothing_to_do(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATESVC_ARCHIVE_DIR")
    assert "there is no archive" in await shell("archive", "run", exit_code=2)


async def test_a_missing_file_stops_archiving_until_it_is_back_or_given_up(
    archivist: Archivist, shell: Shell
) -> None:
    await archivist.shop.say({"number": "A1", "status": "in_transit"})
    day = await archivist.archived()
    file = archivist.folder / str((await archivist.ledger())[day].file_name)
    assert "is there as it was written" in await shell(
        "archive", "lost", file.name, "--why", "a mistake", exit_code=1
    )
    content = file.read_bytes()
    file.unlink()
    await archivist.days_pass(1)
    printed = await shell("archive", "run", exit_code=1)
    assert "0 days archived with 0 bodies" in printed
    assert f"REFUSED, nothing leaves the database: {archivist.folder}" in printed
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
    assert await archivist.shop.rows(why) == [("the disk died",)]
    # what turns up after all is read as before
    file.write_bytes(content)
    assert "REFUSED" not in await shell("archive", "run")

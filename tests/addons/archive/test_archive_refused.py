"""A place that is not the archive which the ledger names: nothing is archived, nothing is
dropped, and it is said.
"""

import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from statesvc.addons.archive import archive_pass, day_pass
from statesvc.addons.archive.archive_checks import CHECK
from statesvc.addons.archive.archive_identity import ArchiveIdentity
from statesvc.api.service_status import read_status
from statesvc.files.archive_folder import read_back
from statesvc.health.finding import Urgency
from tests.addons.archive.broken_folders import (
    Break,
    a_file,
    absent,
    cut_short,
    empty,
    of_another_installation,
    put_back,
    without,
)
from tests.world.body_archiver import HOT_DAYS, KEEP_MONTHS, Archiver


async def two_days(archiver: Archiver) -> tuple[date, date]:
    """Return one archived day, and one that is due."""
    await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    archived = await archiver.archived()
    await archiver.harness.ingest({"number": "A2", "status": "in_transit"})
    due = await archiver.today()
    await archiver.days_pass(HOT_DAYS + 1)
    return archived, due


@pytest.mark.parametrize(
    "break_it",
    [absent, empty, of_another_installation, a_file, without(".ssb"), cut_short(".ssb")],
    ids=["absent", "empty", "of another installation", "a file", "partly there", "cut short"],
)
async def test_nothing_leaves_the_database_until_the_archive_is_back(
    archiver: Archiver, break_it: Break
) -> None:
    _, due = await two_days(archiver)
    ledger, bodies = (
        await archiver.ledger(),
        await archiver.harness.rows("SELECT message_id FROM statesvc.body ORDER BY 1"),
    )
    break_it(archiver.folder)
    there = archiver.files()
    outcome = await archiver.run_pass()
    assert str(archiver.folder) in str(outcome.refused)
    assert (outcome.archived, outcome.expired, outcome.bodies, outcome.pruned) == ([], [], 0, 0)
    assert await archiver.partition(due) is not None
    assert await archiver.harness.rows("SELECT message_id FROM statesvc.body ORDER BY 1") == bodies
    assert (archiver.files(), await archiver.ledger()) == (there, ledger)
    trouble = next(
        trouble
        for trouble in (await read_status(archiver.harness.connection)).troubles
        if trouble.about == "archive"
    )
    assert (trouble.urgency, str(outcome.refused) in trouble.text) == (Urgency.NOW, True)
    put_back(archiver.folder)
    outcome = await archiver.run_pass()
    assert (outcome.refused, due in outcome.archived, await archiver.partition(due)) == (
        None,
        True,
        None,
    )
    assert await CHECK.find(archiver.harness.connection) == []


@pytest.mark.parametrize("break_it", [empty, without(".ssb")], ids=["empty", "partly there"])
async def test_what_the_archive_should_have_is_neither_deleted_nor_forgotten(
    archiver: Archiver, break_it: Break
) -> None:
    """Bodies that were retained until their archive had them, days whose months are over."""
    archived, _ = await two_days(archiver)
    await archiver.harness.as_owner(
        "INSERT INTO statesvc.body_retained SELECT m.message_id, m.received_at, m.carrier_id,"
        " sha256('x'), '{}', 'x' FROM statesvc.message m WHERE m.received_at <"
        f" '{archived}'::date + 1"
    )
    retained = await archiver.retained()
    assert retained
    break_it(archiver.folder)
    await archiver.days_pass(31 * KEEP_MONTHS)
    assert (await archiver.run_pass()).refused is not None
    assert await archiver.retained() == retained
    row = (await archiver.ledger())[archived]
    assert (row.expired_at, row.deleted_at) == (None, None)


async def test_a_file_that_is_replaced_before_the_drop_keeps_its_day(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, due = await two_days(archiver)

    def then_replaced(path: Path) -> bytes:
        digest = read_back(path)
        if due.isoformat() in path.name:
            content = path.read_bytes()
            path.unlink()
            path.write_bytes(content)
        return digest

    with monkeypatch.context() as replacing:
        replacing.setattr(archive_pass, "read_back", then_replaced)
        outcome = await archiver.run_pass()
    assert due in outcome.failed
    assert await archiver.partition(due) is not None
    assert due in (await archiver.run_pass()).archived


async def test_an_archive_that_was_moved_as_a_whole_is_gone_on_with(archiver: Archiver) -> None:
    archived, due = await two_days(archiver)
    elsewhere = archiver.folder.with_name("elsewhere")
    shutil.copytree(archiver.folder, elsewhere)
    first = archiver.archiving
    archiver.archiving = replace(first, folder=elsewhere)
    assert due in (await archiver.run_pass()).archived
    assert str((await archiver.ledger())[archived].file_name) in archiver.files()
    # the folder of before, by mistake
    assert "is missing" in str((await archiver.run_pass(folder=first.folder)).refused)


async def test_a_marker_that_is_missing_alone_is_written_again(archiver: Archiver) -> None:
    _, due = await two_days(archiver)
    marker = (
        archiver.folder
        / ArchiveIdentity(
            archiver.harness.connection, archiver.folder, archiver.harness.keyring
        ).marker
    )
    marker.unlink()
    assert due in (await archiver.run_pass()).archived
    assert marker.exists()


async def test_an_older_database_beside_a_newer_archive_waits_for_the_fork(
    archiver: Archiver,
) -> None:
    # what the restore lost may be in files of the archive alone: they are not written anew before
    # the log has another epoch
    _, due = await two_days(archiver)
    await archiver.harness.connection.execute(
        "INSERT INTO statesvc.sealing_refusal (why, since) VALUES ('a backup was restored', now())"
    )
    newer = (
        archiver.folder
        / f"bodies-{due}-{next(iter(archiver.files())).split('-')[4]}-{'1' * 16}.ssb"
    )
    newer.write_text("has what the restore lost")
    assert "a backup was restored" in str((await archiver.run_pass()).refused)
    assert newer.exists()
    assert await archiver.partition(due) is not None
    await archiver.harness.connection.execute("DELETE FROM statesvc.sealing_refusal")
    assert due in (await archiver.run_pass()).archived


async def test_an_expired_file_that_cannot_be_deleted_is_not_said_to_be(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived, _ = await two_days(archiver)
    await archiver.days_pass(31 * KEEP_MONTHS)

    def refuse(_path: Path) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as refusing:
        refusing.setattr(day_pass, "remove", refuse)
        assert "Read-only" in str((await archiver.run_pass()).refused)
    assert (await archiver.ledger())[archived].deleted_at is None
    await archiver.run_pass()
    assert (await archiver.ledger())[archived].deleted_at is not None

"""A place that is not the archive which the ledger names: nothing is archived, nothing is
dropped, and it is said.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from statesvc.addons.archive import archive_pass, day_pass
from statesvc.addons.archive.archive_identity import MARKER, ArchiveIdentity, read_refusal
from statesvc.api.service_status import read_status
from statesvc.files.archive_folder import read_back
from statesvc.health.finding import Urgency
from tests.world.body_archivist import HOT_DAYS, KEEP_MONTHS, Archivist


def move_away(folder: Path) -> None:
    folder.rename(folder.with_name("away"))


def empty(folder: Path) -> None:
    move_away(folder)
    folder.mkdir()


def of_another_installation(folder: Path) -> None:
    empty(folder)
    (folder / f"{MARKER}{'0' * 16}").write_text("")
    (folder / f"bodies-2026-03-01-d4c3b2a1-{'1' * 16}.ssb").write_text("theirs")


def no_folder(folder: Path) -> None:
    move_away(folder)
    folder.write_text("")


def partly_there(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("away"))
    next(path for path in sorted(folder.iterdir()) if path.suffix == ".ssb").unlink()


def cut_short(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("away"))
    path = next(path for path in sorted(folder.iterdir()) if path.suffix == ".ssb")
    path.write_bytes(path.read_bytes()[:-1])


def restore_shipments(folder: Path) -> None:
    shutil.rmtree(folder) if folder.is_dir() else folder.unlink(missing_ok=True)
    folder.with_name("away").rename(folder)


async def two_days(archivist: Archivist) -> tuple[date, date]:
    """Return one archived day, and one that is due."""
    await archivist.shop.say({"number": "A1", "status": "in_transit"})
    archived = await archivist.archived()
    await archivist.shop.say({"number": "A2", "status": "in_transit"})
    due = await archivist.today()
    await archivist.days_pass(HOT_DAYS + 1)
    return archived, due


@pytest.mark.parametrize(
    "break_it", [move_away, empty, of_another_installation, no_folder, partly_there, cut_short]
)
async def test_nothing_leaves_the_database_until_the_archive_is_back(
    archivist: Archivist, break_it: Callable[[Path], None]
) -> None:
    _, due = await two_days(archivist)
    ledger, bodies = (
        await archivist.ledger(),
        await archivist.shop.rows("SELECT message_id FROM statesvc.body ORDER BY 1"),
    )
    break_it(archivist.folder)
    there = archivist.files()
    outcome = await archivist.run_pass()
    assert str(archivist.folder) in str(outcome.refused)
    assert (outcome.archived, outcome.expired, outcome.bodies, outcome.pruned) == ([], [], 0, 0)
    assert await archivist.partition(due) is not None
    assert await archivist.shop.rows("SELECT message_id FROM statesvc.body ORDER BY 1") == bodies
    assert (archivist.files(), await archivist.ledger()) == (there, ledger)
    trouble = next(
        trouble
        for trouble in (await read_status(archivist.shop.connection)).troubles
        if trouble.about == "archive"
    )
    assert (trouble.urgency, str(outcome.refused) in trouble.text) == (Urgency.NOW, True)
    restore_shipments(archivist.folder)
    outcome = await archivist.run_pass()
    assert (outcome.refused, due in outcome.archived, await archivist.partition(due)) == (
        None,
        True,
        None,
    )
    assert await read_refusal(archivist.shop.connection) is None


@pytest.mark.parametrize("break_it", [empty, partly_there])
async def test_what_the_archive_should_have_is_neither_deleted_nor_forgotten(
    archivist: Archivist, break_it: Callable[[Path], None]
) -> None:
    """Bodies that were retained until their archive had them, days whose months are over."""
    archived, _ = await two_days(archivist)
    await archivist.shop.as_owner(
        "INSERT INTO statesvc.body_retained SELECT m.message_id, m.received_at, m.carrier_id,"
        " sha256('x'), '{}', 'x' FROM statesvc.message m WHERE m.received_at <"
        f" '{archived}'::date + 1"
    )
    retained = await archivist.retained()
    assert retained
    break_it(archivist.folder)
    await archivist.days_pass(31 * KEEP_MONTHS)
    assert (await archivist.run_pass()).refused is not None
    assert await archivist.retained() == retained
    row = (await archivist.ledger())[archived]
    assert (row.expired_at, row.deleted_at) == (None, None)


async def test_a_file_that_is_replaced_before_the_drop_keeps_its_day(
    archivist: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, due = await two_days(archivist)

    def then_replaced(path: Path) -> bytes:
        digest = read_back(path)
        if due.isoformat() in path.name:
            content = path.read_bytes()
            path.unlink()
            path.write_bytes(content)
        return digest

    with monkeypatch.context() as replacing:
        replacing.setattr(archive_pass, "read_back", then_replaced)
        outcome = await archivist.run_pass()
    assert due in outcome.failed
    assert await archivist.partition(due) is not None
    assert due in (await archivist.run_pass()).archived


async def test_a_file_that_the_disk_has_otherwise_keeps_its_day(
    archivist: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, due = await two_days(archivist)
    with monkeypatch.context() as damaged:
        # what was verified came from memory
        damaged.setattr(archive_pass, "read_back", lambda _path: bytes(32))
        outcome = await archivist.run_pass()
    assert due in outcome.failed
    assert await archivist.partition(due) is not None
    assert due in (await archivist.run_pass()).archived


async def test_the_archive_of_another_installation_is_not_begun_in(archivist: Archivist) -> None:
    archivist.folder.mkdir()
    (archivist.folder / f"{MARKER}{'0' * 16}").write_text("")
    await archivist.days_pass(HOT_DAYS + 1)
    outcome = await archivist.run_pass()
    assert "another installation" in str(outcome.refused)
    assert (outcome.archived, await archivist.ledger()) == ([], {})


async def test_an_archive_that_was_moved_as_a_whole_is_gone_on_with(archivist: Archivist) -> None:
    archived, due = await two_days(archivist)
    elsewhere = archivist.folder.with_name("elsewhere")
    shutil.copytree(archivist.folder, elsewhere)
    first = archivist.archiving
    archivist.archiving = replace(first, folder=elsewhere)
    assert due in (await archivist.run_pass()).archived
    assert str((await archivist.ledger())[archived].file_name) in archivist.files()
    # the folder of before, by mistake
    assert "is missing" in str((await archivist.run_pass(folder=first.folder)).refused)


async def test_a_marker_that_is_missing_alone_is_written_again(archivist: Archivist) -> None:
    _, due = await two_days(archivist)
    marker = (
        archivist.folder
        / ArchiveIdentity(
            archivist.shop.connection, archivist.folder, archivist.shop.keyring
        ).marker
    )
    marker.unlink()
    assert due in (await archivist.run_pass()).archived
    assert marker.exists()


async def test_an_older_database_beside_a_newer_archive_waits_for_the_fork(
    archivist: Archivist,
) -> None:
    # what the restore lost may be in files of the archive alone: they are not written anew before
    # the log has another epoch
    _, due = await two_days(archivist)
    await archivist.shop.connection.execute(
        "INSERT INTO statesvc.sealing_refusal (why, since) VALUES ('a backup was restored', now())"
    )
    newer = (
        archivist.folder
        / f"bodies-{due}-{next(iter(archivist.files())).split('-')[4]}-{'1' * 16}.ssb"
    )
    newer.write_text("has what the restore lost")
    assert "a backup was restored" in str((await archivist.run_pass()).refused)
    assert newer.exists()
    assert await archivist.partition(due) is not None
    await archivist.shop.connection.execute("DELETE FROM statesvc.sealing_refusal")
    assert due in (await archivist.run_pass()).archived


async def test_an_expired_file_that_cannot_be_deleted_is_not_said_to_be(
    archivist: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived, _ = await two_days(archivist)
    await archivist.days_pass(31 * KEEP_MONTHS)

    def refuse(_path: Path) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as refusing:
        refusing.setattr(day_pass, "remove", refuse)
        assert "Read-only" in str((await archivist.run_pass()).refused)
    assert (await archivist.ledger())[archived].deleted_at is None
    await archivist.run_pass()
    assert (await archivist.ledger())[archived].deleted_at is not None


async def test_a_day_that_was_given_up_holds_up_nothing_and_expires(archivist: Archivist) -> None:
    archived, due = await two_days(archivist)
    (archivist.folder / str((await archivist.ledger())[archived].file_name)).unlink()
    assert (await archivist.run_pass()).refused is not None
    await archivist.shop.as_owner(
        f"UPDATE statesvc.body_archive SET lost_at = statesvc.clock() WHERE day = '{archived}'"
    )
    outcome = await archivist.run_pass()
    assert (outcome.refused, due in outcome.archived) == (None, True)
    await archivist.days_pass(31 * KEEP_MONTHS)
    assert archived in (await archivist.run_pass()).expired

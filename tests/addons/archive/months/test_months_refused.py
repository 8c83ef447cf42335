"""Months of the log and a place that is not their archive: they stay in the database, whenever the
place goes and whoever is killed.
"""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statesvc.addons.archive import archive_pass
from statesvc.addons.archive.archive_identity import MARKER, read_refusal
from statesvc.files.archive_folder import read_back
from tests.addons.archive.months import dying
from tests.world.attack import places
from tests.world.forked import fork
from tests.world.log_archivist import Archivist
from tests.world.mounts import mounted_tmpfs
from tests.world.object_store import ObjectStore


def away(folder: Path) -> Path:
    return folder.with_name("away")


def absent(folder: Path) -> None:
    folder.rename(away(folder))


def empty(folder: Path) -> None:
    absent(folder)
    folder.mkdir()


def of_another_installation(folder: Path) -> None:
    empty(folder)
    (folder / f"{MARKER}{'0' * 16}").write_text("")


def half_written(folder: Path) -> None:
    shutil.copytree(folder, away(folder))
    path = next(
        path for path in sorted(folder.iterdir()) if path.name.endswith(".shipments.parquet")
    )
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])


def without_heads(folder: Path) -> None:
    shutil.copytree(folder, away(folder))
    next(path for path in folder.iterdir() if path.suffix == ".checkpoint").unlink()


def put_back(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    away(folder).rename(folder)


async def first_archived(archivist: Archivist) -> dict[str, int]:
    """Archive the first month; the second one is due."""
    await archivist.two_months()
    await archivist.archived()
    await archivist.pass_days(31)
    return await archivist.counts()


@pytest.mark.parametrize(
    "break_it", [absent, empty, of_another_installation, half_written, without_heads]
)
async def test_a_month_stays_until_the_archive_is_back(
    archivist: Archivist, break_it: Callable[[Path], None]
) -> None:
    counts = await first_archived(archivist)
    break_it(archivist.folder)
    outcome = await archivist.run_pass()
    assert str(archivist.folder) in str(outcome.refused)
    assert (
        outcome.archived,
        outcome.packed,
        await archivist.counts(),
        len(await archivist.ledger()),
    ) == ([], 0, counts, 1)
    put_back(archivist.folder)
    outcome = await archivist.run_pass()
    assert (outcome.refused, len(outcome.archived)) == (None, 1)
    assert await read_refusal(archivist.connection) is None
    assert places(archivist.verify()) == []


@pytest.mark.parametrize("break_it", [absent, empty, half_written])
async def test_a_place_that_goes_during_the_notice_keeps_the_month(
    archivist: Archivist, break_it: Callable[[Path], None]
) -> None:
    counts = await first_archived(archivist)

    async def wait(seconds: float) -> None:
        break_it(archivist.folder)
        await archivist.notice(seconds)

    assert (await archivist.run_pass(wait=wait)).refused is not None
    assert await archivist.counts() == counts
    put_back(archivist.folder)
    assert len((await archivist.run_pass()).archived) == 1
    assert places(archivist.verify()) == []


async def test_the_first_month_of_all_stays_where_its_file_went(archivist: Archivist) -> None:
    # no ledger names a file yet that could be missing
    await archivist.two_months()
    counts = await archivist.counts()

    async def wait(seconds: float) -> None:
        empty(archivist.folder)
        await archivist.notice(seconds)

    outcome = await archivist.run_pass(wait=wait)
    assert (outcome.archived, len(outcome.failed)) == ([], 1)
    assert await archivist.counts() == counts
    assert len((await archivist.run_pass()).archived) == 1
    assert places(archivist.verify()) == []


async def test_a_place_that_goes_after_the_file_was_read_back_keeps_the_month(
    archivist: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = await first_archived(archivist)

    def then_gone(path: Path) -> bytes:
        digest = read_back(path)
        if path.name.endswith(".shipments.parquet"):
            empty(archivist.folder)
        return digest

    with monkeypatch.context() as leaving:
        leaving.setattr(archive_pass, "read_back", then_gone)
        assert (await archivist.run_pass()).refused is not None
    assert await archivist.counts() == counts
    put_back(archivist.folder)
    assert len((await archivist.run_pass()).archived) == 1
    assert places(archivist.verify()) == []


@pytest.mark.parametrize(
    ("step", "when"),
    [
        ("entries", "before"),
        ("publish", "after"),
        ("note_verified", "after"),
        ("give_notice", "after"),
    ],
)
async def test_an_archiver_is_killed_and_then_the_volume_goes(
    archivist: Archivist, tmp_path: Path, step: str, when: str
) -> None:
    counts = await first_archived(archivist)
    arguments = (archivist.database.service_dsn, str(archivist.folder), step, when)
    child = await fork(
        dying.__name__, arguments, environment=os.environ, output=tmp_path / "printed"
    )
    assert await child.wait() == -signal.SIGKILL
    with mounted_tmpfs(archivist.folder):
        assert "none of the" in str((await archivist.run_pass()).refused)
        await archivist.notice(60)
        assert "none of the" in str((await archivist.run_pass()).refused)
        assert (archivist.files(), await archivist.counts()) == ([], counts)
    assert len((await archivist.run_pass()).archived) == 1
    assert places(archivist.verify()) == []


async def test_volumes_that_are_read_only_or_full_keep_the_month(archivist: Archivist) -> None:
    with mounted_tmpfs(archivist.folder, size="512k") as remount:
        counts = await first_archived(archivist)
        remount("ro")
        assert "read-only" in str((await archivist.run_pass()).refused)
        remount("rw")
        ballast = archivist.folder / "ballast"
        with pytest.raises(OSError, match="No space"):
            ballast.write_bytes(bytes(1 << 20))
        outcome = await archivist.run_pass()
        assert (
            outcome.refused,
            outcome.archived,
            len(outcome.failed),
            await archivist.counts(),
        ) == (None, [], 1, counts)
        ballast.unlink()
        assert len((await archivist.run_pass()).archived) == 1
        assert places(archivist.verify()) == []


class TestInAnObjectStore:
    @pytest.fixture
    def archive_place(self, object_store: ObjectStore) -> str:
        return object_store.place("months")

    async def test_objects_that_are_missing_or_cut_short_keep_the_month(
        self, archivist: Archivist, object_store: ObjectStore
    ) -> None:
        counts = await first_archived(archivist)
        objects: dict[str, Any] = object_store.objects
        entries = next(key for key in objects if key.count(".") == 1 and key.endswith(".parquet"))
        for change in ("delete", "cut"):
            if change == "delete":
                object_store.delete(entries)
            else:
                object_store.put(entries, objects[entries][:-1])
            assert "files that were archived" in str((await archivist.run_pass()).refused)
            assert await archivist.counts() == counts
        object_store.delete(*objects)
        assert (await archivist.run_pass()).refused is not None
        assert (object_store.objects, await archivist.counts()) == ({}, counts)
        for key, content in objects.items():
            object_store.put(key, content)
        assert len((await archivist.run_pass()).archived) == 1
        assert places(archivist.verify()) == []

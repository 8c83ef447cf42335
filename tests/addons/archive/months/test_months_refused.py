"""Months of the log and a place that is not their archive: they stay in the database, whenever the
place goes and whoever is killed.
"""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from statesvc.addons.archive.archive_checks import CHECK
from tests.addons.archive.broken_folders import (
    Break,
    absent,
    cut_short,
    empty,
    of_another_installation,
    put_back,
    without,
)
from tests.addons.archive.months import dying
from tests.world.attack import places
from tests.world.forked import fork
from tests.world.log_archiver import Archiver
from tests.world.mounts import mounted_tmpfs
from tests.world.object_store import ObjectStore


async def first_archived(archiver: Archiver) -> dict[str, int]:
    """Archive the first month; the second one is due."""
    await archiver.two_months()
    await archiver.archived()
    await archiver.pass_days(31)
    return await archiver.counts()


@pytest.mark.parametrize(
    "break_it",
    [
        absent,
        empty,
        of_another_installation,
        cut_short(".shipments.parquet"),
        without(".checkpoint"),
    ],
    ids=["absent", "empty", "of another installation", "half written", "without heads"],
)
async def test_a_month_stays_until_the_archive_is_back(archiver: Archiver, break_it: Break) -> None:
    counts = await first_archived(archiver)
    break_it(archiver.folder)
    outcome = await archiver.run_pass()
    assert str(archiver.folder) in str(outcome.refused)
    assert (
        outcome.archived,
        outcome.packed,
        await archiver.counts(),
        len(await archiver.ledger()),
    ) == ([], 0, counts, 1)
    put_back(archiver.folder)
    outcome = await archiver.run_pass()
    assert (outcome.refused, len(outcome.archived)) == (None, 1)
    assert await CHECK.find(archiver.connection) == []
    assert places(archiver.verify()) == []


@pytest.mark.parametrize(
    "break_it",
    [absent, empty, cut_short(".shipments.parquet")],
    ids=["absent", "empty", "cut short"],
)
async def test_a_place_that_goes_during_the_notice_keeps_the_month(
    archiver: Archiver, break_it: Break
) -> None:
    counts = await first_archived(archiver)

    async def wait(seconds: float) -> None:
        break_it(archiver.folder)
        await archiver.notice(seconds)

    assert (await archiver.run_pass(wait=wait)).refused is not None
    assert await archiver.counts() == counts
    put_back(archiver.folder)
    assert len((await archiver.run_pass()).archived) == 1
    assert places(archiver.verify()) == []


async def test_the_first_month_of_all_stays_where_its_file_went(archiver: Archiver) -> None:
    # no ledger names a file yet that could be missing
    await archiver.two_months()
    counts = await archiver.counts()

    async def wait(seconds: float) -> None:
        empty(archiver.folder)
        await archiver.notice(seconds)

    outcome = await archiver.run_pass(wait=wait)
    assert (outcome.archived, len(outcome.failed)) == ([], 1)
    assert await archiver.counts() == counts
    assert len((await archiver.run_pass()).archived) == 1
    assert places(archiver.verify()) == []


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
    archiver: Archiver, tmp_path: Path, step: str, when: str
) -> None:
    counts = await first_archived(archiver)
    arguments = (archiver.database.service_dsn, str(archiver.folder), step, when)
    child = await fork(
        dying.__name__, arguments, environment=os.environ, output=tmp_path / "printed"
    )
    assert await child.wait() == -signal.SIGKILL
    with mounted_tmpfs(archiver.folder):
        assert "none of the" in str((await archiver.run_pass()).refused)
        await archiver.notice(60)
        assert "none of the" in str((await archiver.run_pass()).refused)
        assert (archiver.files(), await archiver.counts()) == ([], counts)
    assert len((await archiver.run_pass()).archived) == 1
    assert places(archiver.verify()) == []


async def test_volumes_that_are_read_only_or_full_keep_the_month(archiver: Archiver) -> None:
    with mounted_tmpfs(archiver.folder, size="512k") as remount:
        counts = await first_archived(archiver)
        remount("ro")
        assert "read-only" in str((await archiver.run_pass()).refused)
        remount("rw")
        ballast = archiver.folder / "ballast"
        with pytest.raises(OSError, match="No space"):
            ballast.write_bytes(bytes(1 << 20))
        outcome = await archiver.run_pass()
        assert (
            outcome.refused,
            outcome.archived,
            len(outcome.failed),
            await archiver.counts(),
        ) == (None, [], 1, counts)
        ballast.unlink()
        assert len((await archiver.run_pass()).archived) == 1
        assert places(archiver.verify()) == []


class TestInAnObjectStore:
    @pytest.fixture
    def archive_place(self, object_store: ObjectStore) -> str:
        return object_store.place("months")

    async def test_objects_that_are_missing_or_cut_short_keep_the_month(
        self, archiver: Archiver, object_store: ObjectStore
    ) -> None:
        counts = await first_archived(archiver)
        objects: dict[str, Any] = object_store.objects
        entries = next(key for key in objects if key.count(".") == 1 and key.endswith(".parquet"))
        for change in ("delete", "cut"):
            if change == "delete":
                object_store.delete(entries)
            else:
                object_store.put(entries, objects[entries][:-1])
            assert "files that were archived" in str((await archiver.run_pass()).refused)
            assert await archiver.counts() == counts
        object_store.delete(*objects)
        assert (await archiver.run_pass()).refused is not None
        assert (object_store.objects, await archiver.counts()) == ({}, counts)
        for key, content in objects.items():
            object_store.put(key, content)
        assert len((await archiver.run_pass()).archived) == 1
        assert places(archiver.verify()) == []

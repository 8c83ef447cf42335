"""The archive in an object store: a real S3 server, killed archivers, and a network that is cut."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from statesvc.addons.archive.archive_checks import check_archives
from statesvc.files.archive_folder import archive_at, writing_folder
from statesvc.files.object_path import ObjectStoreError
from statesvc.settings.service_settings import load_settings
from tests.addons.archive.months.test_round import killed_everywhere
from tests.world.attack import places
from tests.world.log_archiver import Archiver, shipment
from tests.world.object_store import ObjectStore
from tests.world.shell import Shell, use


@pytest.fixture
def archive_place(object_store: ObjectStore) -> Iterator[str]:
    place = object_store.place("some/prefix")
    yield place
    writing_folder(archive_at(place)).rmdir()


def unfinished(archiver: Archiver) -> list[Path]:
    return list(writing_folder(archiver.archiving.folder).iterdir())


@pytest.mark.usefixtures("two_months")
async def test_an_archiver_may_be_killed_anywhere_of_a_store(
    archiver: Archiver, archive_place: str, object_store: ObjectStore, tmp_path: Path
) -> None:
    await killed_everywhere(archiver, archive_place, tmp_path)
    assert {key.rpartition("/")[0] for key in object_store.objects} == {"some/prefix"}
    assert unfinished(archiver) == []
    await archiver.archive.restore_shipments(archiver.connection, [shipment("1Z0001")])
    assert (
        len(
            await archiver.log.rows(
                f"SELECT FROM statesvc.event WHERE shipment_id = '{shipment('1Z0001')}'"
            )
        )
        == 5
    )
    assert places(archiver.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_a_store_that_cannot_be_reached_costs_time_alone(
    archiver: Archiver, object_store: ObjectStore
) -> None:
    counts = await archiver.counts()
    object_store.cut()
    assert "the object store did not answer" in str((await archiver.run_pass()).refused)
    assert await archiver.ledger() == {}
    assert unfinished(archiver) == []
    object_store.heal()

    async def cut(_seconds: float) -> None:
        object_store.cut()

    # the notice has begun, and the file is compared once more before the month leaves: what
    # was written stays written
    assert len((await archiver.run_pass(wait=cut)).leaving) == 1
    (written,) = (await archiver.ledger()).values()
    await archiver.notice(60)
    assert "the object store did not answer" in str((await archiver.run_pass()).refused)
    assert await archiver.counts() == counts
    object_store.heal()
    month = await archiver.archived()
    assert (month.file_name, month.sha256) == (written.file_name, written.sha256)
    object_store.cut()
    with pytest.raises(ObjectStoreError, match="did not answer"):
        await archiver.archive.restore_shipments(archiver.connection, [shipment("1Z0001")])
    assert "did not answer" in str(archiver.verify().faults)
    object_store.heal()
    await archiver.archive.restore_shipments(archiver.connection, [shipment("1Z0001")])
    assert places(archiver.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_commands_read_it_and_say_what_is_wrong(
    archiver: Archiver,
    archive_place: str,
    object_store: ObjectStore,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(archiver.database, monkeypatch)
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", archive_place)

    async def doctor() -> list[str]:
        found = check_archives(archiver.connection, load_settings())
        return [str(finding) async for finding in found]

    await archiver.archived()
    assert "1 months of the log read, 0 files missing" in await shell("archive", "verify")
    assert any("files are there" in line for line in await doctor())
    object_store.cut()
    assert "the object store did not answer" in await shell("archive", "verify", exit_code=1)
    assert any("the object store did not answer" in line for line in await doctor())

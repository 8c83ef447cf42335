"""Archived months are verified like the rest, by one process or a cluster; a damaged file is named."""

import random
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from events.merkle.checkpoint import Checkpoint
from statesvc.addons.archive.entry_file import EntryFile, EntryFileWriter
from statesvc.addons.archive.file_names import checkpoint_of, index_of
from statesvc.addons.archive.month_files import prove
from statesvc.addons.verify import verify_log
from statesvc.addons.verify.log_state import read_snapshot
from statesvc.addons.verify.verify_log import Verification, VerificationRequest
from statesvc.addons.verify.worker_pool import LogAccess
from statesvc.files.archive_errors import UnreadableArchiveError
from statesvc.log.log_months import LogMonth
from statesvc.shipments.rebuild.rebuild import Rebuild
from tests.world.attack import attack, places, verify
from tests.world.log_archiver import Archiver, shipment


def _path(archiver: Archiver, month: LogMonth) -> Path:
    assert month.file_name is not None
    return archiver.folder / month.file_name


def _flip(path: Path, place: int, bit: int) -> bytes:
    content = path.read_bytes()
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    path.chmod(0o600)
    path.write_bytes(changed)
    return content


@pytest.mark.usefixtures("two_months")
async def test_the_log_is_sound_before_and_after(archiver: Archiver) -> None:
    before = archiver.verify()
    month = await archiver.archived()
    after = archiver.verify(processes=2)
    assert (places(before), places(after)) == ([], [])
    # and the entry that says that the month was archived
    assert (after.entries, after.events, after.size) == (
        before.entries + 1,
        before.events,
        before.size,
    )
    assert month.entries > (await archiver.counts())["event"]
    head = await archiver.log.opened()
    assert isinstance(head, Checkpoint)
    note = (
        await archiver.log.rows(
            "SELECT note FROM statesvc.checkpoint ORDER BY tree_size DESC LIMIT 1"
        )
    )[0][0]
    assert places(archiver.verify(note=note)) == []


@pytest.mark.usefixtures("two_months")
async def test_a_file_proves_itself_against_its_head(archiver: Archiver) -> None:
    month = await archiver.archived()
    path = _path(archiver, month)
    ((root, note),) = await archiver.log.rows(
        f"SELECT root, note FROM statesvc.checkpoint WHERE tree_size = {month.tree_size}"
    )
    assert path.with_name(checkpoint_of(path).name).read_text("utf-8") == note
    with EntryFile(path) as file:
        assert file.metadata[b"statesvc.checkpoint"] == note.encode()
        assert prove(file, root)
        assert not prove(file, bytes(32))
        indexes = [entry.index for group in file.groups for entry in file.group(group)]
        assert indexes == sorted(indexes)
        assert (indexes[0], indexes[-1], len(indexes)) == (
            month.first_index,
            month.last_index,
            month.entries,
        )


@pytest.mark.usefixtures("two_months")
async def test_any_flipped_bit_of_a_file_is_found(archiver: Archiver) -> None:
    month = await archiver.archived()
    path = _path(archiver, month)
    length = path.stat().st_size
    chance = random.Random(1)
    flips = [(chance.randrange(length), chance.randrange(8)) for _ in range(25)]
    for place, bit in [(0, 0), (length - 1, 7), (length - 6, 3), *flips]:
        content = _flip(path, place, bit)
        found = archiver.verify()
        assert found.faults, f"byte {place}, bit {bit}"
        assert all(path.name in str(fault) for fault in found.faults), places(found)
        path.write_bytes(content)
    assert places(archiver.verify()) == []


async def test_an_entry_that_was_swapped_in_a_file_with_its_ledger_is_named(
    archiver: Archiver,
) -> None:
    """Somebody writes another file, with good checksums, and changes the ledger: the tree
    does not have its entry.
    """
    await archiver.two_months()
    month = await archiver.archived()
    path = _path(archiver, month)
    with EntryFile(path) as file:
        entries, metadata = (
            [entry for group in file.groups for entry in file.group(group)],
            dict(file.metadata),
        )
    metadata.pop(b"ARROW:schema")
    forged = entries[3].canonical.replace(b"worker-1", b"worker-9")
    assert forged != entries[3].canonical
    entries[3] = replace(entries[3], canonical=forged, leaf_hash=sha256(b"\x00" + forged).digest())
    path.unlink()
    writer = EntryFileWriter(path, metadata)
    writer.write(entries)
    writer.close()
    digest = sha256(path.read_bytes()).hexdigest()
    await archiver.as_owner(f"UPDATE statesvc.log_archive SET sha256 = decode('{digest}', 'hex')")
    (fault,) = archiver.verify().faults
    assert fault.table.startswith(path.name)
    assert f"batch_id={entries[3].batch_id} ordinal={entries[3].ordinal}" in str(fault)


@pytest.mark.usefixtures("two_months")
async def test_a_missing_file_is_one_finding(archiver: Archiver) -> None:
    month = await archiver.archived()
    path = _path(archiver, month)
    away = path.rename(path.with_suffix(".away"))
    found = archiver.verify()
    assert places(found) == [f"{path.name} (the whole file), content: it is missing"]
    away.rename(path)
    for name in (index_of(path).name, checkpoint_of(path).name):
        other = path.with_name(name)
        retained = other.rename(other.with_suffix(".away"))
        assert places(archiver.verify()) == [
            f"{other.name} (the whole file), content: it is missing"
        ]
        retained.rename(other)
    assert places(archiver.verify()) == []
    assert "STATESVC_ARCHIVE_DIR" in places(verify(archiver.database, archive=None))[0]


@pytest.mark.usefixtures("two_months")
async def test_an_event_taken_out_of_both_is_missed(archiver: Archiver) -> None:
    month = await archiver.archived()
    await archiver.archive.restore_shipments(archiver.connection, [shipment("1Z0001")])
    assert places(archiver.verify()) == []
    await attack(
        archiver.database,
        f"UPDATE statesvc.event SET carrier_code = 'x' WHERE shipment_id = '{shipment('1Z0001')}'",
    )
    found = places(archiver.verify())
    assert found
    assert all(fault.startswith("event (") for fault in found)
    assert str(month.file_name) not in str(found)


@pytest.mark.usefixtures("two_months")
async def test_events_of_archived_months_have_their_rows_too(archiver: Archiver) -> None:
    month = await archiver.archived()
    assert month.events
    await attack(
        archiver.database,
        "DELETE FROM statesvc.event_key k WHERE NOT EXISTS (SELECT FROM statesvc.event e WHERE"
        " e.event_id = k.event_id) AND k.event_id = (SELECT min(event_id) FROM statesvc.event_key o"
        " WHERE NOT EXISTS (SELECT FROM statesvc.event e WHERE e.event_id = o.event_id))",
    )
    (fault,) = archiver.verify().faults
    assert (fault.table, fault.field) == ("event_key", "event_id")


@pytest.mark.usefixtures("two_months")
async def test_an_auditor_verifies_archived_months_too(archiver: Archiver) -> None:
    await archiver.run_pass()
    access = LogAccess(dsn=archiver.database.auditor_dsn, archive=archiver.folder)
    assert places(Verification(VerificationRequest(access=access), lambda *_: None).run()) == []


FEW = "SELECT batch_id FROM statesvc.sealed_batch ORDER BY first_index DESC LIMIT 1"


@pytest.fixture
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_log, "read_snapshot", partial(read_snapshot, range_entries=3))


@pytest.mark.usefixtures("two_months", "_small_ranges")
async def test_a_cluster_names_what_one_process_names(
    archiver: Archiver, process_cluster: str
) -> None:
    await archiver.archived()
    whole = archiver.verify(master=process_cluster)
    alone = archiver.verify()
    assert (places(whole), whole.entries, whole.events) == ([], alone.entries, alone.events)
    assert (whole.heads, whole.batches, whole.unchecked) == (
        alone.heads,
        alone.batches,
        alone.unchecked,
    )
    await attack(
        archiver.database,
        "UPDATE statesvc.event SET kind = 'info' WHERE version = 1",
        "UPDATE statesvc.stream SET head_hash = sha256('') "
        f"WHERE shipment_id = '{shipment('1Z0001')}'",
        "UPDATE statesvc.sealed_batch SET sealed_at = sealed_at + interval '1 s' "
        f"WHERE batch_id = ({FEW})",
    )
    found = places(archiver.verify(master=process_cluster))
    assert found == places(archiver.verify())
    assert {fault.partition(" ")[0] for fault in found} >= {"event", "stream", "sealed_batch"}


@pytest.mark.usefixtures("two_months")
async def test_a_cluster_folds_archive_and_tables(archiver: Archiver, process_cluster: str) -> None:
    month = await archiver.archived()
    task = Rebuild(
        owner_dsn=archiver.database.owner_dsn,
        actor="test",
        processes=1,
        progress=lambda *_: None,
        master=process_cluster,
        archive=archiver.archive,
    )
    events, drift = await task.compare()
    assert events == archiver.verify().events
    assert drift == []
    await attack(
        archiver.database,
        f"UPDATE statesvc.shipment SET status = 'lost' WHERE shipment_id = '{shipment('1Z0001')}'",
    )
    _, (differs,) = await task.compare()
    assert (differs.shipment_id, differs.fields) == (shipment("1Z0001"), ("status",))
    (archiver.folder / str(month.file_name)).unlink()
    with pytest.raises(UnreadableArchiveError):
        await task.compare()

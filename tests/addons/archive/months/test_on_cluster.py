"""A cluster comes to the verdict of one process, though it loses and repeats its work."""

from functools import partial

import pytest

from statesvc.addons.verify import verify_log, worker_pool
from statesvc.addons.verify.log_state import read_snapshot
from statesvc.files.archive_errors import UnreadableArchiveError
from statesvc.shipments.rebuild.rebuild import Rebuild
from tests.world.attack import attack, places
from tests.world.log_archivist import Archivist, shipment

FEW = "SELECT batch_id FROM statesvc.sealed_batch ORDER BY first_index DESC LIMIT 1"


@pytest.fixture
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_log, "read_snapshot", partial(read_snapshot, range_entries=3))
    monkeypatch.setattr(worker_pool, "CALL_RANGES", 2)
    monkeypatch.setattr(worker_pool, "BUCKET_RANGES", 4)


@pytest.mark.usefixtures("two_months", "_small_ranges")
async def test_a_cluster_names_what_one_process_names(
    archivist: Archivist, process_cluster: str
) -> None:
    await archivist.archived()
    whole = archivist.verify(master=process_cluster)
    alone = archivist.verify()
    assert (places(whole), whole.entries, whole.events) == ([], alone.entries, alone.events)
    assert (whole.heads, whole.batches, whole.unchecked) == (
        alone.heads,
        alone.batches,
        alone.unchecked,
    )
    await attack(
        archivist.database,
        "UPDATE statesvc.event SET kind = 'info' WHERE version = 1",
        "UPDATE statesvc.stream SET head_hash = sha256('') "
        f"WHERE shipment_id = '{shipment('1Z0001')}'",
        "UPDATE statesvc.sealed_batch SET sealed_at = sealed_at + interval '1 s' "
        f"WHERE batch_id = ({FEW})",
    )
    found = places(archivist.verify(master=process_cluster))
    assert found == places(archivist.verify())
    assert {fault.partition(" ")[0] for fault in found} >= {"event", "stream", "sealed_batch"}


@pytest.mark.usefixtures("two_months")
async def test_a_cluster_folds_archive_and_tables(
    archivist: Archivist, process_cluster: str
) -> None:
    month = await archivist.archived()
    task = Rebuild(
        owner_dsn=archivist.database.owner_dsn,
        actor="test",
        processes=1,
        progress=lambda *_: None,
        master=process_cluster,
        archive=archivist.archive,
    )
    events, drift = await task.compare()
    assert events == archivist.verify().events
    assert drift == []
    await attack(
        archivist.database,
        f"UPDATE statesvc.shipment SET status = 'lost' WHERE shipment_id = '{shipment('1Z0001')}'",
    )
    _, (differs,) = await task.compare()
    assert (differs.shipment_id, differs.fields) == (shipment("1Z0001"), ("status",))
    (archivist.folder / str(month.file_name)).unlink()
    with pytest.raises(UnreadableArchiveError):
        await task.compare()

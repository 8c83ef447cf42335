"""Archived bodies in an object store: a real S3 server, and a network that is cut."""

from dataclasses import replace

import pytest

from statesvc.addons.archive.archive_identity import MARKER
from statesvc.bodies.find_bodies import ArchiveUnavailableError
from statesvc.files.archive_folder import archive_at, writing_folder
from tests.world.body_archiver import Archiver
from tests.world.object_store import ObjectStore
from tests.world.worker_harness import push_body


async def test_bodies_go_there_come_from_there_and_end_there(
    archiver: Archiver, object_store: ObjectStore
) -> None:
    harness = archiver.harness
    archiver.archiving = replace(archiver.archiving, folder=archive_at(object_store.place()))
    message_ids = await harness.push(
        *(
            bodies := [
                push_body({"number": f"N{n % 5}", "status": "in_transit", "minute": n})
                for n in range(40)
            ]
        )
    )
    await harness.work()
    day = await archiver.archived()
    assert str((await archiver.ledger())[day].file_name) in object_store.objects
    assert [await archiver.body(message_id) for message_id in message_ids] == bodies
    object_store.cut()
    with pytest.raises(ArchiveUnavailableError, match="did not answer"):
        await archiver.body(message_ids[0])
    # a check that gets no answer says nothing of the file
    await archiver.days_pass(30)
    assert "did not answer" in str((await archiver.run_pass()).refused)
    assert (await archiver.ledger())[day].fault is None
    object_store.heal()
    await archiver.days_pass(26 * 31)
    assert day in (await archiver.run_pass()).expired
    assert [key.startswith(MARKER) for key in object_store.objects] == [True]
    writing_folder(archiver.archiving.folder).rmdir()

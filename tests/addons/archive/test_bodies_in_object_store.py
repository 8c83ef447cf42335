"""Archived bodies in an object store: a real S3 server, and a network that is cut."""

from dataclasses import replace

import pytest

from statesvc.addons.archive.archive_identity import MARKER
from statesvc.bodies.find_bodies import ArchiveUnavailableError
from statesvc.files.archive_folder import archive_at, writing_folder
from tests.world.body_archivist import Archivist
from tests.world.object_store import ObjectStore
from tests.world.shop import says


async def test_bodies_go_there_come_from_there_and_end_there(
    archivist: Archivist, object_store: ObjectStore
) -> None:
    shop = archivist.shop
    archivist.archiving = replace(archivist.archiving, folder=archive_at(object_store.place()))
    message_ids = await shop.push(
        *(
            bodies := [
                says({"number": f"N{n % 5}", "status": "in_transit", "minute": n})
                for n in range(40)
            ]
        )
    )
    await shop.work()
    day = await archivist.archived()
    assert str((await archivist.ledger())[day].file_name) in object_store.objects
    assert [await archivist.body(message_id) for message_id in message_ids] == bodies
    object_store.cut()
    with pytest.raises(ArchiveUnavailableError, match="did not answer"):
        await archivist.body(message_ids[0])
    # a check that gets no answer says nothing of the file
    await archivist.days_pass(30)
    assert "did not answer" in str((await archivist.run_pass()).refused)
    assert (await archivist.ledger())[day].fault is None
    object_store.heal()
    await archivist.days_pass(26 * 31)
    assert day in (await archivist.run_pass()).expired
    assert [key.startswith(MARKER) for key in object_store.objects] == [True]
    writing_folder(archivist.archiving.folder).rmdir()

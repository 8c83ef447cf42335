"""History is read again from hot and archived bodies alike."""

from dataclasses import replace

import pytest

from statesvc.bodies.find_bodies import ArchiveUnavailableError
from tests.addons.mappings.test_history_reread import again, candidate_reads, status
from tests.statesvc.reading.planted import CARRIER, MISREAD
from tests.world.body_archivist import Archivist
from tests.world.shop import CARRIER_ID


async def test_hot_and_archived_messages_are_read_again_in_one_run(archivist: Archivist) -> None:
    shop = archivist.shop
    shop.context = replace(shop.context, carriers={CARRIER_ID: CARRIER})
    await candidate_reads(shop, "2")
    await shop.say({"number": "A1", "status": "in_transit", "code": MISREAD})
    await archivist.archived()
    await shop.say({"number": "A2", "status": "in_transit", "code": MISREAD})
    assert (await status(shop, "A1"), await status(shop, "A2")) == ("delivered", "delivered")
    with pytest.raises(ArchiveUnavailableError, match="STATESVC_ARCHIVE_DIR"):
        await again(shop, read_by="2")
    report = await again(shop, read_by="2", archive=archivist.folder)
    assert (report.messages, report.corrected, report.unreadable) == (2, 2, 0)
    assert (await status(shop, "A1"), await status(shop, "A2")) == ("in_transit", "in_transit")

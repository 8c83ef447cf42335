"""Archived days expire, except under a legal hold; history is read from hot and archived bodies alike."""

from dataclasses import replace
from typing import Any

import pytest

from statesvc.addons.archive import day_pass
from statesvc.bodies.find_bodies import ArchiveUnavailableError, BodyLocation
from statesvc.bodies.legal_holds import LegalHold, place_hold, release_hold
from tests.addons.mappings.test_history_reread import again, candidate_reads, status
from tests.statesvc.reading.planted import CARRIER, MISREAD
from tests.world.body_archivist import KEEP_MONTHS, Archivist
from tests.world.shop import CARRIER_ID, says


class KilledError(Exception):
    """Stands for SIGKILL: nothing after it runs."""


@pytest.mark.slow
async def test_a_hold_survives_expiry_and_its_release_ends_it(archivist: Archivist) -> None:
    shop = archivist.shop
    held = await shop.say({"number": "A1", "status": "in_transit"})
    held_too = await shop.say(
        {"number": "A2", "status": "in_transit"},
        {"number": "A1", "status": "delivered", "minute": 5},
    )
    free = await shop.say({"number": "A3", "status": "in_transit"})
    hold = await place_hold(
        shop.connection, carrier_id=CARRIER_ID, tracking_number="a-1", why="case 7", actor="tester"
    )
    assert isinstance(hold, LegalHold)
    day = await archivist.archived()
    assert await archivist.retained() == {held, held_too}
    later = await shop.say({"number": "A1", "status": "in_transit", "minute": 9})
    later_day = await archivist.today()
    await shop.as_owner("DELETE FROM statesvc.body_retained")
    await archivist.days_pass(31 * KEEP_MONTHS)
    outcome = await archivist.run_pass()
    assert day in outcome.expired
    assert await archivist.retained() == {held, held_too, later}
    assert await archivist.body(held) == says({"number": "A1", "status": "in_transit"})
    assert await archivist.place(free) is BodyLocation.EXPIRED
    assert await archivist.body(free) is None
    assert later_day in await archivist.ledger()
    ledger = await archivist.ledger()
    assert ledger[day].deleted_at is not None
    assert str(ledger[day].file_name) not in archivist.files()
    released = await release_hold(
        shop.connection, carrier_id=CARRIER_ID, tracking_number="A1", why="settled", actor="tester"
    )
    assert isinstance(released, LegalHold)
    await archivist.run_pass()
    assert await archivist.retained() == set()
    assert await archivist.place(held) is BodyLocation.EXPIRED


async def test_verdicts_leave_with_the_files_of_their_bodies(archivist: Archivist) -> None:
    shop = archivist.shop
    messages = "SELECT message_id FROM statesvc.message ORDER BY message_id"
    held = await shop.say({"number": "A1", "status": "in_transit"})
    await shop.say({"number": "A2", "status": "in_transit"})
    assert isinstance(
        await place_hold(
            shop.connection,
            carrier_id=CARRIER_ID,
            tracking_number="A1",
            why="case 7",
            actor="tester",
        ),
        LegalHold,
    )
    await archivist.archived()
    assert (await archivist.run_pass()).messages_expired == []
    await archivist.days_pass(31 * KEEP_MONTHS)
    assert (await archivist.run_pass()).messages_expired == []
    await archivist.days_pass(31 * 3)
    later = await shop.say({"number": "A3", "status": "in_transit"})
    assert len((await archivist.run_pass()).messages_expired) == 1
    assert await shop.rows(messages) == [(held,), (later,)]
    assert await archivist.body(held) == says({"number": "A1", "status": "in_transit"})
    await shop.as_owner("DELETE FROM statesvc.body_retained")
    assert len((await archivist.run_pass()).messages_expired) == 1
    assert await shop.rows(messages) == [(later,)]
    assert (await archivist.run_pass()).messages_expired == []
    # nothing is taken in twice, and what comes late finds its place
    await shop.say({"number": "A2", "status": "in_transit"})
    assert await shop.value("SELECT count(*) FROM statesvc.event") == 3


async def test_a_hold_placed_while_a_day_expires_is_looked_for_again(
    archivist: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = archivist.shop
    held = await shop.say({"number": "A1", "status": "in_transit"})
    day = await archivist.archived()
    await archivist.days_pass(31 * KEEP_MONTHS)
    genuine = day_pass.retain_held

    async def meanwhile(*arguments: Any) -> None:
        await genuine(*arguments)
        if arguments[2].day == day:
            await place_hold(
                shop.connection,
                carrier_id=CARRIER_ID,
                tracking_number="A1",
                why="case 7",
                actor="tester",
            )

    monkeypatch.setattr(day_pass, "retain_held", meanwhile)
    assert day not in (await archivist.run_pass()).expired
    assert day in (await archivist.run_pass()).expired
    assert await archivist.retained() == {held}


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


@pytest.mark.slow
async def test_an_expiry_that_was_killed_before_the_file_went_is_finished(
    archivist: Archivist, monkeypatch: pytest.MonkeyPatch
) -> None:
    await archivist.shop.say({"number": "A1", "status": "in_transit"})
    await archivist.archived()
    await archivist.days_pass(31 * KEEP_MONTHS)

    def dying(_path: Any) -> None:
        raise KilledError

    with monkeypatch.context() as killing:
        killing.setattr(day_pass, "remove", dying)
        with pytest.raises(KilledError):
            await archivist.run_pass()
    assert archivist.files() != []
    await archivist.run_pass()
    ledger = await archivist.ledger()
    assert {row.deleted_at is None for row in ledger.values() if row.expired_at is not None} == {
        False
    }
    assert archivist.files() == sorted(
        str(row.file_name) for row in ledger.values() if row.expired_at is None
    )

"""Archived days expire, except under a legal hold; history is read from hot and archived bodies alike."""

from dataclasses import replace
from typing import Any

import pytest

from statesvc.addons.archive import day_pass
from statesvc.bodies.find_bodies import ArchiveUnavailableError, BodyLocation
from statesvc.bodies.legal_holds import LegalHold, place_hold, release_hold
from tests.addons.mappings.test_history_reread import again, candidate_reads, status
from tests.statesvc.reading.planted import CARRIER, MISREAD
from tests.world.body_archiver import KEEP_MONTHS, Archiver
from tests.world.worker_harness import CARRIER_ID, push_body


class KilledError(Exception):
    """Stands for SIGKILL: nothing after it runs."""


@pytest.mark.slow
async def test_a_hold_survives_expiry_and_its_release_ends_it(archiver: Archiver) -> None:
    harness = archiver.harness
    held = await harness.ingest({"number": "A1", "status": "in_transit"})
    held_too = await harness.ingest(
        {"number": "A2", "status": "in_transit"},
        {"number": "A1", "status": "delivered", "minute": 5},
    )
    free = await harness.ingest({"number": "A3", "status": "in_transit"})
    hold = await place_hold(
        harness.connection,
        carrier_id=CARRIER_ID,
        tracking_number="a-1",
        why="case 7",
        actor="tester",
    )
    assert isinstance(hold, LegalHold)
    day = await archiver.archived()
    assert await archiver.retained() == {held, held_too}
    later = await harness.ingest({"number": "A1", "status": "in_transit", "minute": 9})
    later_day = await archiver.today()
    await harness.as_owner("DELETE FROM statesvc.body_retained")
    await archiver.days_pass(31 * KEEP_MONTHS)
    outcome = await archiver.run_pass()
    assert day in outcome.expired
    assert await archiver.retained() == {held, held_too, later}
    assert await archiver.body(held) == push_body({"number": "A1", "status": "in_transit"})
    assert await archiver.place(free) is BodyLocation.EXPIRED
    assert await archiver.body(free) is None
    assert later_day in await archiver.ledger()
    ledger = await archiver.ledger()
    assert ledger[day].deleted_at is not None
    assert str(ledger[day].file_name) not in archiver.files()
    released = await release_hold(
        harness.connection,
        carrier_id=CARRIER_ID,
        tracking_number="A1",
        why="settled",
        actor="tester",
    )
    assert isinstance(released, LegalHold)
    await archiver.run_pass()
    assert await archiver.retained() == set()
    assert await archiver.place(held) is BodyLocation.EXPIRED


async def test_verdicts_leave_with_the_files_of_their_bodies(archiver: Archiver) -> None:
    harness = archiver.harness
    messages = "SELECT message_id FROM statesvc.message ORDER BY message_id"
    held = await harness.ingest({"number": "A1", "status": "in_transit"})
    await harness.ingest({"number": "A2", "status": "in_transit"})
    assert isinstance(
        await place_hold(
            harness.connection,
            carrier_id=CARRIER_ID,
            tracking_number="A1",
            why="case 7",
            actor="tester",
        ),
        LegalHold,
    )
    await archiver.archived()
    assert (await archiver.run_pass()).messages_expired == []
    await archiver.days_pass(31 * KEEP_MONTHS)
    assert (await archiver.run_pass()).messages_expired == []
    await archiver.days_pass(31 * 3)
    later = await harness.ingest({"number": "A3", "status": "in_transit"})
    assert len((await archiver.run_pass()).messages_expired) == 1
    assert await harness.rows(messages) == [(held,), (later,)]
    assert await archiver.body(held) == push_body({"number": "A1", "status": "in_transit"})
    await harness.as_owner("DELETE FROM statesvc.body_retained")
    assert len((await archiver.run_pass()).messages_expired) == 1
    assert await harness.rows(messages) == [(later,)]
    assert (await archiver.run_pass()).messages_expired == []
    # nothing is taken in twice, and what comes late finds its place
    await harness.ingest({"number": "A2", "status": "in_transit"})
    assert await harness.value("SELECT count(*) FROM statesvc.event") == 3


async def test_a_hold_placed_while_a_day_expires_is_looked_for_again(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = archiver.harness
    held = await harness.ingest({"number": "A1", "status": "in_transit"})
    day = await archiver.archived()
    await archiver.days_pass(31 * KEEP_MONTHS)
    genuine = day_pass.retain_held

    async def meanwhile(*arguments: Any) -> None:
        await genuine(*arguments)
        if arguments[2].day == day:
            await place_hold(
                harness.connection,
                carrier_id=CARRIER_ID,
                tracking_number="A1",
                why="case 7",
                actor="tester",
            )

    monkeypatch.setattr(day_pass, "retain_held", meanwhile)
    assert day not in (await archiver.run_pass()).expired
    assert day in (await archiver.run_pass()).expired
    assert await archiver.retained() == {held}


async def test_hot_and_archived_messages_are_read_again_in_one_run(archiver: Archiver) -> None:
    harness = archiver.harness
    harness.context = replace(harness.context, carriers={CARRIER_ID: CARRIER})
    await candidate_reads(harness, "2")
    await harness.ingest({"number": "A1", "status": "in_transit", "code": MISREAD})
    await archiver.archived()
    await harness.ingest({"number": "A2", "status": "in_transit", "code": MISREAD})
    assert (await status(harness, "A1"), await status(harness, "A2")) == ("delivered", "delivered")
    with pytest.raises(ArchiveUnavailableError, match="STATESVC_ARCHIVE_DIR"):
        await again(harness, read_by="2")
    report = await again(harness, read_by="2", archive=archiver.folder)
    assert (report.messages, report.corrected, report.unreadable) == (2, 2, 0)
    assert (await status(harness, "A1"), await status(harness, "A2")) == (
        "in_transit",
        "in_transit",
    )


@pytest.mark.slow
async def test_an_expiry_that_was_killed_before_the_file_went_is_finished(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await archiver.harness.ingest({"number": "A1", "status": "in_transit"})
    await archiver.archived()
    await archiver.days_pass(31 * KEEP_MONTHS)

    def dying(_path: Any) -> None:
        raise KilledError

    with monkeypatch.context() as killing:
        killing.setattr(day_pass, "remove", dying)
        with pytest.raises(KilledError):
            await archiver.run_pass()
    assert archiver.files() != []
    await archiver.run_pass()
    ledger = await archiver.ledger()
    assert {row.deleted_at is None for row in ledger.values() if row.expired_at is not None} == {
        False
    }
    assert archiver.files() == sorted(
        str(row.file_name) for row in ledger.values() if row.expired_at is None
    )

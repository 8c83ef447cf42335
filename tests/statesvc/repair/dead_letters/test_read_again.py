"""Dead dead_letters whose messages took effect all the same: unknown codes and rejected
members are read again.
"""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from psycopg import AsyncConnection

from events.clear_part import stand_in
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Status
from statesvc.append.append_batch import AppendBatch
from statesvc.append.transaction import append
from statesvc.queue.claim import settle
from statesvc.reading.read_message import Read, read_message
from statesvc.repair.dead_letters.dead_letter import Obstacle
from statesvc.repair.dead_letters.replay_plan import plan_replay
from statesvc.repair.dead_letters.replay_run import ReplayBudget, ReplayEnd
from tests.statesvc.repair.dead_letters.conftest import RepairHarness
from tests.statesvc.repair.dead_letters.planted import MENDED
from tests.world.mappings import store_mapping
from tests.world.worker_harness import CARRIER_ID, normalize, push_body, shipment

ONWARD = Meaning(Kind.SCAN, Status.OUT_FOR_DELIVERY)


async def say_unknown(repair: RepairHarness, count: int, *, code: str = "NEW") -> list[int]:
    pushes = (
        push_body({"number": f"N{number}", "kind": "unmapped", "code": code}, envelope=number)
        for number in range(count)
    )
    return await repair.bury(*pushes)


async def map_code(
    repair: RepairHarness, code: str = "NEW", meaning: Meaning | None = ONWARD
) -> None:
    await store_mapping(repair.harness.connection, (CARRIER_ID, "T", code), meaning)


async def statuses(repair: RepairHarness) -> dict[str, int]:
    return dict(
        await repair.harness.rows("SELECT status, count(*) FROM statesvc.shipment GROUP BY 1")
    )


async def test_with_a_mapping_all_events_with_the_code_are_corrected_once_and_no_others(
    repair: RepairHarness,
) -> None:
    (dead_letter_id, other) = [
        *await say_unknown(repair, 120),
        *(await say_unknown(repair, 3, code="OTHER"))[1:],
    ]
    await map_code(repair)
    progress = await repair.replay(repair.request(carrier_id=CARRIER_ID, cause="unknown_code"))
    assert (progress.replayed, progress.corrected, progress.reread, progress.ended) == (
        1,
        120,
        120,
        ReplayEnd.DONE,
    )
    assert progress.refused == {Obstacle.NO_MAPPING: 1}
    assert await statuses(repair) == {"out_for_delivery": 120}
    assert await repair.open_dead_letters() == [other]
    assert await repair.harness.rows(
        "SELECT resolution, resolved_by FROM statesvc.dead_letter WHERE dead_letter_id ="
        f" {dead_letter_id}"
    ) == [("replayed", "tester")]
    assert (
        await repair.harness.value("SELECT count(*) FROM statesvc.event WHERE kind = 'correction'")
        == 120
    )
    again = await repair.replay(repair.request(carrier_id=CARRIER_ID, cause="unknown_code"))
    assert again.corrected == 0


@pytest.mark.slow
async def test_a_code_that_was_read_by_its_category_is_corrected_by_its_mapping(
    repair: RepairHarness,
) -> None:
    coarse = {"status": "in_transit", "code": "NEW", "by_category": True}
    (dead_letter_id,) = await repair.bury(
        *(push_body({**coarse, "number": f"N{n}"}, envelope=n) for n in range(3))
    )
    unmapped = await repair.replay(repair.request(dead_letter_id))
    assert (unmapped.replayed, unmapped.refused) == (0, {Obstacle.NO_MAPPING: 1})
    await map_code(repair)
    progress = await repair.replay(repair.request(dead_letter_id))
    assert (progress.replayed, progress.corrected) == (1, 3)
    assert await statuses(repair) == {"out_for_delivery": 3}
    assert await repair.open_dead_letters() == []


@pytest.mark.slow
async def test_a_release_that_knows_the_code_serves_as_well_as_a_mapping(
    repair: RepairHarness,
) -> None:
    (dead_letter_id,) = await say_unknown(repair, 3)

    def knows(body: bytes, received_at: Any) -> Any:
        normalized = normalize(body, received_at)
        known = [
            replace(reading, kind=Kind.SCAN, status=Status.LOST) for reading in normalized.readings
        ]
        return replace(normalized, readings=tuple(known))

    repair.carriers = {CARRIER_ID: replace(MENDED, normalizers={"1": knows})}
    progress = await repair.replay(repair.request(dead_letter_id))
    assert (progress.replayed, progress.corrected) == (1, 3)
    assert await statuses(repair) == {"lost": 3}


@pytest.mark.slow
async def test_a_run_that_died_half_way_is_finished_by_the_next(repair: RepairHarness) -> None:
    (dead_letter_id,) = await say_unknown(repair, 120)
    await map_code(repair)

    order, half = repair.request(dead_letter_id), ReplayBudget(dead_letters_max=1, messages_max=50)
    await repair.call(order, half)
    assert await statuses(repair) == {"out_for_delivery": 50, "unknown": 70}
    assert await repair.open_dead_letters() == [dead_letter_id]
    progress = await repair.replay(repair.request(dead_letter_id))
    assert (progress.replayed, progress.corrected) == (1, 70)
    assert await statuses(repair) == {"out_for_delivery": 120}
    assert (
        await repair.harness.value("SELECT count(*) FROM statesvc.event WHERE kind = 'correction'")
        == 120
    )


@pytest.mark.slow
async def test_an_event_whose_message_cannot_be_read_keeps_the_dead_letter_open_unless_a_mapping_names_it(
    repair: RepairHarness,
) -> None:
    (dead_letter_id,) = await say_unknown(repair, 2)
    await repair.harness.as_owner("UPDATE statesvc.message SET sealed_key = NULL")
    assert (await repair.replay(repair.request(dead_letter_id))).refused == {Obstacle.NO_MAPPING: 1}
    await map_code(repair)
    assert (await repair.replay(repair.request(dead_letter_id))).corrected == 2
    assert await repair.open_dead_letters() == []


@pytest.mark.slow
async def test_what_a_worker_appends_that_did_not_know_the_code_yet_is_read_too(
    repair: RepairHarness,
) -> None:
    (dead_letter_id,) = await say_unknown(repair, 2)
    await repair.harness.push(push_body({"number": "LATE", "kind": "unmapped", "code": "NEW"}))
    messages = await repair.harness.claim()
    stale = [
        read_message(message, keyring=repair.harness.keyring, carriers={CARRIER_ID: MENDED})
        for message in messages
    ]
    reads = [read for read in stale if isinstance(read, Read)]
    await map_code(repair)
    order = repair.request(dead_letter_id)
    found = await plan_replay(repair.connection, order)
    async with await AsyncConnection.connect(
        repair.harness.database.service_dsn, autocommit=True
    ) as late:
        async with late.transaction():
            # it has joined the open dead letter, and commits only after that was resolved
            async with late.pipeline():
                batch = await append(AppendBatch(late, repair.harness.keyring, reads, "worker-2"))
                await settle(late, batch.settlements, worker="worker-2")
            reading = asyncio.create_task(repair.replay(order, found=found))
            await repair.harness.until(
                "SELECT count(*) FROM statesvc.dead_letter WHERE resolved_at IS NULL", 0
            )
            await asyncio.sleep(0.1)
            assert not reading.done()
        progress = await reading
    assert (progress.corrected, progress.refused) == (3, {})
    assert (
        await repair.harness.value(
            "SELECT status FROM statesvc.shipment WHERE shipment_id = %s", shipment("LATE")
        )
        == "out_for_delivery"
    )


async def test_rejected_members_are_appended_when_they_can_be_read(repair: RepairHarness) -> None:
    dead_letters = await repair.bury(
        *(
            push_body({"number": f"N{number}", "status": "in_transit"}, rejected=1, envelope=number)
            for number in range(3)
        )
    )
    assert await repair.harness.rows("SELECT DISTINCT cause FROM statesvc.dead_letter") == [
        ("rejected_member",)
    ]
    repair.carriers = {CARRIER_ID: replace(MENDED, normalizers={"1": normalize})}
    progress = await repair.replay(repair.request(cause="rejected_member"))
    assert (progress.replayed, progress.refused) == (0, {Obstacle.STILL_REJECTED: 3})
    assert await repair.open_dead_letters() == dead_letters

    def reads_all(body: bytes, received_at: Any) -> Any:
        normalized = normalize(body, received_at)
        missed = replace(
            normalized.readings[0],
            status=Status.DELIVERED,
            raw=normalized.readings[0].raw._replace(code="MISSED"),
        )
        return replace(normalized, readings=(*normalized.readings, missed), rejections=())

    repair.carriers = {CARRIER_ID: replace(MENDED, normalizers={"1": reads_all})}
    progress = await repair.replay(repair.request(cause="rejected_member"))
    assert (progress.replayed, progress.added, progress.reread) == (3, 3, 3)
    assert await statuses(repair) == {"delivered": 3}
    assert await repair.open_dead_letters() == []


async def test_a_message_that_was_erased_cannot_be_read_again(repair: RepairHarness) -> None:
    await repair.bury(push_body({"number": "N1", "status": "in_transit"}, rejected=1))
    await repair.harness.as_owner("UPDATE statesvc.message SET sealed_key = NULL")
    progress = await repair.replay(repair.request(cause="rejected_member"))
    assert progress.refused == {Obstacle.UNREADABLE: 1}


@pytest.mark.slow
async def test_the_dead_letter_of_texts_is_resolved_when_all_of_them_are_mapped(
    repair: RepairHarness,
) -> None:
    (dead_letter_id,) = await say_unknown(repair, 2, code="Left with Ann")
    await say_unknown(repair, 3, code="Left with Bob")
    assert await repair.open_dead_letters() == [dead_letter_id]
    for name in ("Ann", "Bob"):
        progress = await repair.replay(repair.request(dead_letter_id))
        assert progress.replayed == 0
        digest = repair.harness.keyring.carrier_digest(CARRIER_ID)
        await map_code(repair, stand_in(f"left with {name}", CARRIER_ID, digest))
    progress = await repair.replay(repair.request(dead_letter_id))
    assert progress.replayed == 1
    assert await repair.open_dead_letters() == []

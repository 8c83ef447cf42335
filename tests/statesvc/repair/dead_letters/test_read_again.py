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
from tests.statesvc.repair.dead_letters.conftest import Desk
from tests.statesvc.repair.dead_letters.planted import MENDED
from tests.world.mappings import store_mapping
from tests.world.shop import CARRIER_ID, normalize, says, shipment

ONWARD = Meaning(Kind.SCAN, Status.OUT_FOR_DELIVERY)


async def say_unknown(desk: Desk, count: int, *, code: str = "NEW") -> list[int]:
    pushes = (
        says({"number": f"N{number}", "kind": "unmapped", "code": code}, envelope=number)
        for number in range(count)
    )
    return await desk.bury(*pushes)


async def map_code(desk: Desk, code: str = "NEW", meaning: Meaning | None = ONWARD) -> None:
    await store_mapping(desk.shop.connection, (CARRIER_ID, "T", code), meaning)


async def statuses(desk: Desk) -> dict[str, int]:
    return dict(await desk.shop.rows("SELECT status, count(*) FROM statesvc.shipment GROUP BY 1"))


async def test_without_a_mapping_nothing_is_done_and_the_answer_says_so(desk: Desk) -> None:
    (dead_letter_id,) = await say_unknown(desk, 3)
    progress = await desk.replay(desk.order(dead_letter_id))
    assert (progress.replayed, progress.refused) == (0, {Obstacle.NO_MAPPING: 1})
    assert await desk.open_dead_letters() == [dead_letter_id]
    assert await statuses(desk) == {"unknown": 3}


async def test_with_a_mapping_all_events_with_the_code_are_corrected_once_and_no_others(
    desk: Desk,
) -> None:
    (dead_letter_id, other) = [
        *await say_unknown(desk, 120),
        *(await say_unknown(desk, 3, code="OTHER"))[1:],
    ]
    await map_code(desk)
    progress = await desk.replay(desk.order(carrier_id=CARRIER_ID, cause="unknown_code"))
    assert (progress.replayed, progress.corrected, progress.reread, progress.ended) == (
        1,
        120,
        120,
        ReplayEnd.DONE,
    )
    assert progress.refused == {Obstacle.NO_MAPPING: 1}
    assert await statuses(desk) == {"out_for_delivery": 120}
    assert await desk.open_dead_letters() == [other]
    assert await desk.shop.rows(
        "SELECT resolution, resolved_by FROM statesvc.dead_letter WHERE dead_letter_id ="
        f" {dead_letter_id}"
    ) == [("replayed", "tester")]
    assert (
        await desk.shop.value("SELECT count(*) FROM statesvc.event WHERE kind = 'correction'")
        == 120
    )
    again = await desk.replay(desk.order(carrier_id=CARRIER_ID, cause="unknown_code"))
    assert again.corrected == 0


@pytest.mark.slow
async def test_a_code_that_was_read_by_its_category_is_corrected_by_its_mapping(desk: Desk) -> None:
    coarse = {"status": "in_transit", "code": "NEW", "by_category": True}
    (dead_letter_id,) = await desk.bury(
        *(says({**coarse, "number": f"N{n}"}, envelope=n) for n in range(3))
    )
    unmapped = await desk.replay(desk.order(dead_letter_id))
    assert (unmapped.replayed, unmapped.refused) == (0, {Obstacle.NO_MAPPING: 1})
    await map_code(desk)
    progress = await desk.replay(desk.order(dead_letter_id))
    assert (progress.replayed, progress.corrected) == (1, 3)
    assert await statuses(desk) == {"out_for_delivery": 3}
    assert await desk.open_dead_letters() == []


@pytest.mark.slow
async def test_a_release_that_knows_the_code_serves_as_well_as_a_mapping(desk: Desk) -> None:
    (dead_letter_id,) = await say_unknown(desk, 3)

    def knows(body: bytes, received_at: Any) -> Any:
        normalized = normalize(body, received_at)
        known = [
            replace(reading, kind=Kind.SCAN, status=Status.LOST) for reading in normalized.readings
        ]
        return replace(normalized, readings=tuple(known))

    desk.carriers = {CARRIER_ID: replace(MENDED, normalizers={"1": knows})}
    progress = await desk.replay(desk.order(dead_letter_id))
    assert (progress.replayed, progress.corrected) == (1, 3)
    assert await statuses(desk) == {"lost": 3}


@pytest.mark.slow
async def test_a_run_that_died_half_way_is_finished_by_the_next(desk: Desk) -> None:
    (dead_letter_id,) = await say_unknown(desk, 120)
    await map_code(desk)

    order, half = desk.order(dead_letter_id), ReplayBudget(dead_letters_max=1, messages_max=50)
    await desk.call(order, half)
    assert await statuses(desk) == {"out_for_delivery": 50, "unknown": 70}
    assert await desk.open_dead_letters() == [dead_letter_id]
    progress = await desk.replay(desk.order(dead_letter_id))
    assert (progress.replayed, progress.corrected) == (1, 70)
    assert await statuses(desk) == {"out_for_delivery": 120}
    assert (
        await desk.shop.value("SELECT count(*) FROM statesvc.event WHERE kind = 'correction'")
        == 120
    )


@pytest.mark.slow
async def test_an_event_whose_message_cannot_be_read_keeps_the_dead_letter_open_unless_a_mapping_names_it(
    desk: Desk,
) -> None:
    (dead_letter_id,) = await say_unknown(desk, 2)
    await desk.shop.as_owner("UPDATE statesvc.message SET sealed_key = NULL")
    progress = await desk.replay(desk.order(dead_letter_id))
    assert progress.refused == {Obstacle.NO_MAPPING: 1}
    await map_code(desk)
    assert (await desk.replay(desk.order(dead_letter_id))).corrected == 2
    assert await desk.open_dead_letters() == []


@pytest.mark.slow
async def test_what_a_worker_appends_that_did_not_know_the_code_yet_is_read_too(desk: Desk) -> None:
    (dead_letter_id,) = await say_unknown(desk, 2)
    await desk.shop.push(says({"number": "LATE", "kind": "unmapped", "code": "NEW"}))
    messages = await desk.shop.claim()
    stale = [
        read_message(message, keyring=desk.shop.keyring, carriers={CARRIER_ID: MENDED})
        for message in messages
    ]
    reads = [read for read in stale if isinstance(read, Read)]
    await map_code(desk)
    order = desk.order(dead_letter_id)
    found = await plan_replay(desk.connection, order)
    async with await AsyncConnection.connect(
        desk.shop.database.service_dsn, autocommit=True
    ) as late:
        async with late.transaction():
            # it has joined the open dead letter, and commits only after that was resolved
            async with late.pipeline():
                batch = await append(AppendBatch(late, desk.shop.keyring, reads, "worker-2"))
                await settle(late, batch.settlements, worker="worker-2")
            reading = asyncio.create_task(desk.replay(order, found=found))
            await desk.shop.until(
                "SELECT count(*) FROM statesvc.dead_letter WHERE resolved_at IS NULL", 0
            )
            await asyncio.sleep(0.1)
            assert not reading.done()
        progress = await reading
    assert (progress.corrected, progress.refused) == (3, {})
    assert (
        await desk.shop.value(
            "SELECT status FROM statesvc.shipment WHERE shipment_id = %s", shipment("LATE")
        )
        == "out_for_delivery"
    )


async def test_rejected_members_are_appended_when_they_can_be_read(desk: Desk) -> None:
    dead_letters = await desk.bury(
        *(
            says({"number": f"N{number}", "status": "in_transit"}, rejected=1, envelope=number)
            for number in range(3)
        )
    )
    assert await desk.shop.rows("SELECT DISTINCT cause FROM statesvc.dead_letter") == [
        ("rejected_member",)
    ]
    desk.carriers = {CARRIER_ID: replace(MENDED, normalizers={"1": normalize})}
    progress = await desk.replay(desk.order(cause="rejected_member"))
    assert (progress.replayed, progress.refused) == (0, {Obstacle.STILL_REJECTED: 3})
    assert await desk.open_dead_letters() == dead_letters

    def reads_all(body: bytes, received_at: Any) -> Any:
        normalized = normalize(body, received_at)
        missed = replace(
            normalized.readings[0],
            status=Status.DELIVERED,
            raw=normalized.readings[0].raw._replace(code="MISSED"),
        )
        return replace(normalized, readings=(*normalized.readings, missed), rejections=())

    desk.carriers = {CARRIER_ID: replace(MENDED, normalizers={"1": reads_all})}
    progress = await desk.replay(desk.order(cause="rejected_member"))
    assert (progress.replayed, progress.added, progress.reread) == (3, 3, 3)
    assert await statuses(desk) == {"delivered": 3}
    assert await desk.open_dead_letters() == []


async def test_a_message_that_was_erased_cannot_be_read_again(desk: Desk) -> None:
    await desk.bury(says({"number": "N1", "status": "in_transit"}, rejected=1))
    await desk.shop.as_owner("UPDATE statesvc.message SET sealed_key = NULL")
    progress = await desk.replay(desk.order(cause="rejected_member"))
    assert progress.refused == {Obstacle.UNREADABLE: 1}


@pytest.mark.slow
async def test_the_events_of_a_code_are_read_over_several_calls_and_a_late_one_too(
    desk: Desk,
) -> None:
    (dead_letter_id,) = await say_unknown(desk, 120)
    await map_code(desk)
    order, budget = desk.order(dead_letter_id), ReplayBudget(dead_letters_max=10, messages_max=50)
    first, position = await desk.call(order, budget)
    assert (first.ended, first.corrected, first.remaining) == (ReplayEnd.LIMIT_REACHED, 50, 1)
    second, position = await desk.call(order, budget, position)
    third, _ = await desk.call(order, budget, position)
    assert (second.corrected, third.corrected, third.replayed, third.ended) == (
        50,
        20,
        1,
        ReplayEnd.DONE,
    )
    assert await statuses(desk) == {"out_for_delivery": 120}


@pytest.mark.slow
async def test_the_dead_letter_of_texts_is_resolved_when_all_of_them_are_mapped(desk: Desk) -> None:
    (dead_letter_id,) = await say_unknown(desk, 2, code="Left with Ann")
    await say_unknown(desk, 3, code="Left with Bob")
    assert await desk.open_dead_letters() == [dead_letter_id]
    for name in ("Ann", "Bob"):
        progress = await desk.replay(desk.order(dead_letter_id))
        assert progress.replayed == 0
        digest = desk.shop.keyring.carrier_digest(CARRIER_ID)
        await map_code(desk, stand_in(f"left with {name}", CARRIER_ID, digest))
    progress = await desk.replay(desk.order(dead_letter_id))
    assert progress.replayed == 1
    assert await desk.open_dead_letters() == []

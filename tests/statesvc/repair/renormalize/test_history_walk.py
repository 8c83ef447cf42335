"""The walk over history: how far a bounded one goes, and where the next one goes on."""

from typing import Any
from uuid import UUID

import pytest

from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Status
from statesvc.repair.renormalize.history_walk import HistoryWalk, Rereader, WalkPage
from statesvc.repair.renormalize.late_code import FIRST, UnknownCode, messages_with
from tests.statesvc.reading.planted import CARRIER
from tests.world.database import SingleConnection
from tests.world.mappings import store_mapping
from tests.world.worker_harness import CARRIER_ID, WorkerHarness

CODE = UnknownCode(CARRIER_ID, "T", "NEW")


def walk(harness: WorkerHarness, **bounds: Any) -> HistoryWalk:
    async def nobody_wakes(_channels: frozenset[str]) -> None: ...

    return HistoryWalk(
        connections=SingleConnection(harness.connection),
        rereader=Rereader(
            keyring=harness.keyring,
            carriers={CARRIER_ID: CARRIER},
            writer="renormalize-1",
            archive=None,
        ),
        wake=nobody_wakes,
        carrier_id=CARRIER_ID,
        **bounds,
    )


@pytest.fixture
async def message_ids(harness: WorkerHarness) -> list[UUID]:
    """Three messages, in the order of their ids, with a code that is known by now."""
    for number in ("A1", "A2", "A3"):
        await harness.ingest({"number": number, "kind": "unmapped", "code": "NEW"})
    await store_mapping(
        harness.connection, (CARRIER_ID, "T", "NEW"), Meaning(Kind.SCAN, Status.LOST)
    )
    return [
        message_id
        for (message_id,) in await harness.rows(
            "SELECT message_id FROM statesvc.message ORDER BY 1"
        )
    ]


async def test_a_bounded_walk_answers_where_the_next_one_goes_on(
    harness: WorkerHarness, message_ids: list[UUID]
) -> None:
    first = walk(harness, messages_max=2)
    assert await first.read(messages_with(CODE), FIRST) == (message_ids[1], False)
    assert (first.report.corrected, first.asked) == (2, 2)
    second = walk(harness, messages_max=2)
    assert await second.read(messages_with(CODE), message_ids[1]) == (message_ids[2], True)
    assert second.report.corrected == 1


async def test_a_walk_stops_only_where_its_page_has_a_position(
    harness: WorkerHarness, message_ids: list[UUID]
) -> None:
    async def page(_connection: Any, after: int) -> WalkPage[int]:
        return WalkPage(
            [(message_id, None) for message_id in message_ids], after + 1, is_last=after > 0
        )

    bounded = walk(harness, messages_max=1)
    assert await bounded.read(page, 0) == (1, False)
    assert bounded.report.corrected == 3


async def test_a_walk_whose_time_is_up_has_read_a_part(
    harness: WorkerHarness, message_ids: list[UUID]
) -> None:
    late = walk(harness, messages_max=1, seconds=0.0)
    assert await late.read(messages_with(CODE), FIRST) == (message_ids[0], False)

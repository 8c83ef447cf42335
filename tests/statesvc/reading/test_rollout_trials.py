"""The candidate reads its share, is compared, and harms nothing."""

import json
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from statesvc.health.notices import list_notices
from statesvc.log.json_compression import decompress_json
from statesvc.reading.rollout_store import Guard, RolloutSettings, rollout_of, set_rollout
from statesvc.reading.trials import DIFFS_PER_BATCH_MAX, list_differences, totals_of
from tests.statesvc.reading.planted import MISREAD
from tests.world.worker_harness import CARRIER_ID, WorkerHarness, push_body, shipment

pytestmark = pytest.mark.slow

NEWEST = 2**63 - 1


async def change_rollout(
    harness: WorkerHarness,
    candidate: str,
    percent: int = 0,
    *,
    shadow: bool = False,
    guard: Guard | None = None,
) -> None:
    rollout = RolloutSettings(candidate=candidate, percent=percent, shadow=shadow, guard=guard)
    await set_rollout(harness.connection, CARRIER_ID, rollout, why="test", actor="tester")


async def diffs(harness: WorkerHarness) -> list[tuple[str, str | None, str | None]]:
    found, _ = await list_differences(
        harness.connection, CARRIER_ID, candidate=None, before=NEWEST, limit=100
    )
    return [(each.field, each.stable_value, each.candidate_value) for each in found]


async def readers(harness: WorkerHarness) -> dict[str, int]:
    return dict(await harness.rows("SELECT normalizer, count(*) FROM statesvc.event GROUP BY 1"))


async def in_share(harness: WorkerHarness, percent: int) -> set[UUID]:
    found = await harness.rows(
        "SELECT message_id FROM statesvc.body WHERE statesvc.in_share(message_id, carrier_id, %s)",
        percent,
    )
    return {message_id for (message_id,) in found}


async def push(harness: WorkerHarness, count: int, **more: Any) -> None:
    await harness.push(
        *(
            push_body({"number": f"N{n}", "status": "in_transit", **more}, envelope=n)
            for n in range(count)
        )
    )


async def test_the_log_says_who_read_each_message_and_a_repeated_claim_chooses_alike(
    harness: WorkerHarness,
) -> None:
    await change_rollout(harness, "same", 50)
    await push(harness, 200)
    messages = await harness.claim(200)
    share = await in_share(harness, 50)
    expected = len(share)
    assert 60 < expected < 140
    await harness.process(messages)
    assert await readers(harness) == {"acme@same": expected, "acme@1": 200 - expected}
    found = await harness.rows("SELECT message_id, canonical FROM statesvc.event")
    assert all(
        (json.loads(decompress_json(canonical))["normalizer_version"] == "same")
        is (message_id in share)
        for message_id, canonical in found
    )


async def test_turned_back_the_next_claim_reads_by_the_stable_version(
    harness: WorkerHarness,
) -> None:
    await change_rollout(harness, "same", 100)
    await push(harness, 20)
    claimed = await harness.claim(10)
    await change_rollout(harness, "same", 0)
    await harness.process(claimed)
    await harness.work()
    assert await readers(harness) == {"acme@same": 10, "acme@1": 10}


async def test_shadow_finds_the_planted_difference_and_has_no_effect(
    harness: WorkerHarness,
) -> None:
    await change_rollout(harness, "2", shadow=True)
    await push(harness, 3)
    await push(harness, 2, code=MISREAD)
    await harness.work()
    assert await diffs(harness) == [("status", "in_transit", "delivered")] * 2
    assert await readers(harness) == {"acme@1": 5}
    assert {status for (status,) in await harness.rows("SELECT status FROM statesvc.shipment")} == {
        "in_transit"
    }
    totals = await totals_of(harness.connection, CARRIER_ID, "2")
    assert (totals.messages, totals.errors, totals.differing, totals.fields) == (
        5,
        0,
        2,
        {"status": 2},
    )


async def test_a_message_whose_shipment_was_locked_counts_once(harness: WorkerHarness) -> None:
    await change_rollout(harness, "2", shadow=True)
    await push(harness, 1, code=MISREAD)
    async with await AsyncConnection.connect(harness.database.service_dsn) as other:
        await other.execute(
            "SELECT pg_advisory_xact_lock(uuid_hash_extended(%s, 0))", (shipment("N0"),)
        )
        await harness.process(await harness.claim())
        assert await harness.value("SELECT postponed FROM statesvc.inbox") == 1
    await harness.until(
        "SELECT bool_and(available_at <= statesvc.clock()) FROM statesvc.inbox", True
    )
    await harness.work()
    totals = await totals_of(harness.connection, CARRIER_ID, "2")
    assert (totals.messages, totals.differing) == (1, 1)


async def test_a_missing_event_is_a_difference(harness: WorkerHarness) -> None:
    await change_rollout(harness, "forgetful", shadow=True)
    await push(harness, 1)
    await harness.work()
    assert await diffs(harness) == [("event", "said", None)]


async def test_personal_values_are_kept_as_keyed_digests_only(harness: WorkerHarness) -> None:
    await change_rollout(harness, "nosy", shadow=True)
    await push(harness, 1, signed_by="Zaphod")
    await harness.work()
    ((field, mine, other),) = await diffs(harness)
    assert field == "signed_by"
    assert mine is not None
    digest = harness.keyring.carrier_digest(CARRIER_ID)
    assert mine == "digest:" + digest(b"difference\x1fsigned_by\x1fZaphod")[:16].hex()
    assert mine != other
    assert "Zaphod" not in str(await harness.rows("SELECT * FROM statesvc.rollout_diff"))


@pytest.mark.parametrize("percent", [0, 100])
async def test_a_candidate_that_raises_is_a_difference_and_harms_nothing(
    harness: WorkerHarness, percent: int
) -> None:
    await change_rollout(harness, "broken", percent, shadow=True)
    await push(harness, 4)
    await harness.push(b"unreadable")
    await harness.work()
    assert await readers(harness) == {"acme@1": 4}
    assert (
        await harness.value("SELECT count(*) FROM statesvc.dead_letter WHERE kind = 'message'") == 1
    )
    found = await diffs(harness)
    assert {(field, mine) for field, mine, _ in found} == {
        ("verdict", "read"),
        ("verdict", "unreadable: not JSON"),
    }
    assert (await totals_of(harness.connection, CARRIER_ID, "broken")).errors == 4


async def test_a_candidate_that_this_release_does_not_hold_is_not_tried(
    harness: WorkerHarness,
) -> None:
    await change_rollout(harness, "3", 100, shadow=True)
    await push(harness, 2)
    await harness.work()
    assert await readers(harness) == {"acme@1": 2}
    assert (await totals_of(harness.connection, CARRIER_ID, "3")).messages == 0


async def test_differences_are_bounded_a_batch_and_counted_all_the_same(
    harness: WorkerHarness,
) -> None:
    await change_rollout(harness, "2", shadow=True)
    events = [
        {"number": "N", "status": "in_transit", "code": MISREAD, "minute": minute}
        for minute in range(DIFFS_PER_BATCH_MAX + 5)
    ]
    await harness.push(push_body(*events))
    await harness.work()
    assert await harness.value("SELECT count(*) FROM statesvc.rollout_diff") == DIFFS_PER_BATCH_MAX
    assert (await totals_of(harness.connection, CARRIER_ID, "2")).fields == {
        "status": DIFFS_PER_BATCH_MAX + 5
    }


@pytest.mark.parametrize(
    ("candidate", "guard"),
    [
        ("broken", Guard(messages=20, errors_percent=10)),
        ("2", Guard(messages=20, differences_percent=10)),
    ],
)
async def test_the_guard_sets_the_share_to_0_and_says_so_in_the_log(
    harness: WorkerHarness, candidate: str, guard: Guard
) -> None:
    await change_rollout(harness, candidate, 100, shadow=True, guard=guard)
    await push(harness, 2, code=MISREAD)
    await harness.work()
    assert (await rollout_of(harness.connection, CARRIER_ID)).rollout.percent == 100, (
        "2 of 20 are 10 %, not more"
    )
    await push(harness, 3, code=MISREAD, minute=5)
    await harness.work()
    rollout = (await rollout_of(harness.connection, CARRIER_ID)).rollout
    assert (rollout.percent, rollout.candidate, rollout.changed_by) == (0, candidate, "guard")
    action = json.loads(
        await harness.value("SELECT canonical FROM statesvc.action WHERE actor = 'guard'")
    )
    assert (action["verb"], action["target"], action["details"]["percent"]) == (
        "rollout",
        "carrier acme",
        0,
    )
    await push(harness, 3, minute=9)
    await harness.work()
    assert await harness.value("SELECT count(*) FROM statesvc.action WHERE actor = 'guard'") == 1
    ((notice,), _) = await list_notices(harness.connection, unseen_only=True, limit=10)
    assert (notice.kind, notice.target, notice.details["candidate"]) == (
        "rollout.turned_back",
        "carrier acme",
        candidate,
    )


async def test_a_guard_within_its_bounds_keeps_still_and_old_failures_do_not_count_for_a_new_turn(
    harness: WorkerHarness,
) -> None:
    await change_rollout(harness, "broken", 100)
    await push(harness, 20)
    await harness.work()
    await change_rollout(harness, "broken", 100, guard=Guard(messages=20, errors_percent=50))
    await push(harness, 5, minute=5)
    await harness.work()
    assert (await rollout_of(harness.connection, CARRIER_ID)).rollout.percent == 100

"""The candidate reads its share, is compared, and harms nothing."""

import json
from typing import Any
from uuid import UUID

import pytest
import structlog
from psycopg import AsyncConnection

from statesvc.health.notices import list_notices
from statesvc.log.json_compression import decompress_json
from statesvc.reading.rollout_store import Guard, RolloutSettings, rollout_of, set_hold, set_rollout
from statesvc.reading.trials import DIFFS_PER_BATCH_MAX, list_differences, totals_of
from tests.statesvc.reading.planted import MISREAD
from tests.world.shop import CARRIER_ID, Shop, says, shipment

pytestmark = pytest.mark.slow

NEWEST = 2**63 - 1


async def turn(
    shop: Shop,
    candidate: str,
    percent: int = 0,
    *,
    shadow: bool = False,
    guard: Guard | None = None,
) -> None:
    rollout = RolloutSettings(candidate=candidate, percent=percent, shadow=shadow, guard=guard)
    await set_rollout(shop.connection, CARRIER_ID, rollout, why="test", actor="tester")


async def diffs(shop: Shop) -> list[tuple[str, str | None, str | None]]:
    found, _ = await list_differences(
        shop.connection, CARRIER_ID, candidate=None, before=NEWEST, limit=100
    )
    return [(each.field, each.stable_value, each.candidate_value) for each in found]


async def readers(shop: Shop) -> dict[str, int]:
    return dict(await shop.rows("SELECT normalizer, count(*) FROM statesvc.event GROUP BY 1"))


async def in_share(shop: Shop, percent: int) -> set[UUID]:
    found = await shop.rows(
        "SELECT message_id FROM statesvc.body WHERE statesvc.in_share(message_id, carrier_id, %s)",
        percent,
    )
    return {message_id for (message_id,) in found}


async def push(shop: Shop, count: int, **more: Any) -> None:
    await shop.push(
        *(
            says({"number": f"N{n}", "status": "in_transit", **more}, envelope=n)
            for n in range(count)
        )
    )


async def test_the_log_says_who_read_each_message_and_a_repeated_claim_chooses_alike(
    shop: Shop,
) -> None:
    await turn(shop, "same", 50)
    await push(shop, 200)
    messages = await shop.claim(200)
    share = await in_share(shop, 50)
    expected = len(share)
    assert 60 < expected < 140
    await shop.process(messages)
    assert await readers(shop) == {"acme@same": expected, "acme@1": 200 - expected}
    found = await shop.rows("SELECT message_id, canonical FROM statesvc.event")
    assert all(
        (json.loads(decompress_json(canonical))["normalizer_version"] == "same")
        is (message_id in share)
        for message_id, canonical in found
    )


async def test_a_candidate_that_cannot_read_leaves_one_line_a_minute(shop: Shop) -> None:
    await turn(shop, "broken", 100)
    await push(shop, 5)
    messages = await shop.claim(5)
    with structlog.testing.capture_logs() as logged:
        await shop.process(messages)
    (line,) = [line for line in logged if line["event"] == "normalizer_fallback"]
    assert (line["cause"], line["carrier"], line["message_id"]) == (
        "candidate_failed",
        CARRIER_ID,
        str(messages[0].message_id),
    )
    assert await readers(shop) == {"acme@1": 5}


async def test_holding_and_releasing_a_carrier_is_logged(shop: Shop) -> None:
    with structlog.testing.capture_logs() as logged:
        for hold in (True, False):
            await set_hold(
                shop.connection, carrier_id=CARRIER_ID, hold=hold, why="a test", actor="tester"
            )
    assert [(line["event"], line["carrier"]) for line in logged] == [
        ("carrier_held", CARRIER_ID),
        ("carrier_released", CARRIER_ID),
    ]


async def test_turned_back_the_next_claim_reads_by_the_stable_version(shop: Shop) -> None:
    await turn(shop, "same", 100)
    await push(shop, 20)
    claimed = await shop.claim(10)
    await turn(shop, "same", 0)
    await shop.process(claimed)
    await shop.work()
    assert await readers(shop) == {"acme@same": 10, "acme@1": 10}


async def test_shadow_finds_the_planted_difference_and_has_no_effect(shop: Shop) -> None:
    await turn(shop, "2", shadow=True)
    await push(shop, 3)
    await push(shop, 2, code=MISREAD)
    await shop.work()
    assert await diffs(shop) == [("status", "in_transit", "delivered")] * 2
    assert await readers(shop) == {"acme@1": 5}
    assert {status for (status,) in await shop.rows("SELECT status FROM statesvc.shipment")} == {
        "in_transit"
    }
    totals = await totals_of(shop.connection, CARRIER_ID, "2")
    assert (totals.messages, totals.errors, totals.differing, totals.fields) == (
        5,
        0,
        2,
        {"status": 2},
    )


async def test_a_message_whose_shipment_was_locked_counts_once(shop: Shop) -> None:
    await turn(shop, "2", shadow=True)
    await push(shop, 1, code=MISREAD)
    async with await AsyncConnection.connect(shop.database.service_dsn) as other:
        await other.execute(
            "SELECT pg_advisory_xact_lock(uuid_hash_extended(%s, 0))", (shipment("N0"),)
        )
        await shop.process(await shop.claim())
        assert await shop.value("SELECT postponed FROM statesvc.inbox") == 1
    await shop.until("SELECT bool_and(available_at <= statesvc.clock()) FROM statesvc.inbox", True)
    await shop.work()
    totals = await totals_of(shop.connection, CARRIER_ID, "2")
    assert (totals.messages, totals.differing) == (1, 1)


async def test_shadow_stores_nothing_where_nothing_differs(shop: Shop) -> None:
    await turn(shop, "same", 50, shadow=True)
    await push(shop, 20)
    await shop.work()
    assert await diffs(shop) == []
    totals = await totals_of(shop.connection, CARRIER_ID, "same")
    assert (totals.messages, totals.differing, totals.fields) == (20, 0, {})


async def test_a_missing_event_is_a_difference(shop: Shop) -> None:
    await turn(shop, "forgetful", shadow=True)
    await push(shop, 1)
    await shop.work()
    assert await diffs(shop) == [("event", "said", None)]


async def test_personal_values_are_kept_as_keyed_digests_only(shop: Shop) -> None:
    await turn(shop, "nosy", shadow=True)
    await push(shop, 1, signed_by="Zaphod")
    await shop.work()
    ((field, mine, other),) = await diffs(shop)
    assert field == "signed_by"
    assert mine is not None
    digest = shop.keyring.carrier_digest(CARRIER_ID)
    assert mine == "digest:" + digest(b"difference\x1fsigned_by\x1fZaphod")[:16].hex()
    assert mine != other
    assert "Zaphod" not in str(await shop.rows("SELECT * FROM statesvc.rollout_diff"))


@pytest.mark.parametrize("percent", [0, 100])
async def test_a_candidate_that_raises_is_a_difference_and_harms_nothing(
    shop: Shop, percent: int
) -> None:
    await turn(shop, "broken", percent, shadow=True)
    await push(shop, 4)
    await shop.push(b"unreadable")
    await shop.work()
    assert await readers(shop) == {"acme@1": 4}
    assert await shop.value("SELECT count(*) FROM statesvc.dead_letter WHERE kind = 'message'") == 1
    found = await diffs(shop)
    assert {(field, mine) for field, mine, _ in found} == {
        ("verdict", "read"),
        ("verdict", "unreadable: not JSON"),
    }
    assert (await totals_of(shop.connection, CARRIER_ID, "broken")).errors == 4


async def test_a_candidate_that_this_release_does_not_hold_is_not_tried(shop: Shop) -> None:
    await turn(shop, "3", 100, shadow=True)
    await push(shop, 2)
    await shop.work()
    assert await readers(shop) == {"acme@1": 2}
    assert (await totals_of(shop.connection, CARRIER_ID, "3")).messages == 0


async def test_differences_are_bounded_a_batch_and_counted_all_the_same(shop: Shop) -> None:
    await turn(shop, "2", shadow=True)
    events = [
        {"number": "N", "status": "in_transit", "code": MISREAD, "minute": minute}
        for minute in range(DIFFS_PER_BATCH_MAX + 5)
    ]
    await shop.push(says(*events))
    await shop.work()
    assert await shop.value("SELECT count(*) FROM statesvc.rollout_diff") == DIFFS_PER_BATCH_MAX
    assert (await totals_of(shop.connection, CARRIER_ID, "2")).fields == {
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
    shop: Shop, candidate: str, guard: Guard
) -> None:
    await turn(shop, candidate, 100, shadow=True, guard=guard)
    await push(shop, 2, code=MISREAD)
    await shop.work()
    assert (await rollout_of(shop.connection, CARRIER_ID)).rollout.percent == 100, (
        "2 of 20 are 10 %, not more"
    )
    await push(shop, 3, code=MISREAD, minute=5)
    await shop.work()
    rollout = (await rollout_of(shop.connection, CARRIER_ID)).rollout
    assert (rollout.percent, rollout.candidate, rollout.changed_by) == (0, candidate, "guard")
    action = json.loads(
        await shop.value("SELECT canonical FROM statesvc.action WHERE actor = 'guard'")
    )
    assert (action["verb"], action["target"], action["details"]["percent"]) == (
        "rollout",
        "carrier acme",
        0,
    )
    await push(shop, 3, minute=9)
    await shop.work()
    assert await shop.value("SELECT count(*) FROM statesvc.action WHERE actor = 'guard'") == 1
    ((notice,), _) = await list_notices(shop.connection, unseen_only=True, limit=10)
    assert (notice.kind, notice.target, notice.details["candidate"]) == (
        "rollout.turned_back",
        "carrier acme",
        candidate,
    )


async def test_a_guard_within_its_bounds_keeps_still_and_old_failures_do_not_count_for_a_new_turn(
    shop: Shop,
) -> None:
    await turn(shop, "broken", 100)
    await push(shop, 20)
    await shop.work()
    await turn(shop, "broken", 100, guard=Guard(messages=20, errors_percent=50))
    await push(shop, 5, minute=5)
    await shop.work()
    assert (await rollout_of(shop.connection, CARRIER_ID)).rollout.percent == 100

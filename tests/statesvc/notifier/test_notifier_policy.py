"""Policy about subscribers that only fail, or want no more: seen by the operator, never silent."""

import asyncio
import hashlib
from typing import Any
from uuid import UUID

import orjson
import pytest

from statesvc.delivery.outcome import AttemptOutcome
from statesvc.health.notices import Notice, NoticeKind
from statesvc.notifier.policy import ReceiverOutcomes, blames_receiver, log_notices, note, review
from statesvc.subscriptions import subscription_store as store
from statesvc.telemetry.metrics import Telemetry
from tests.world.waiting import until

HOUR = 3600.0


async def notices(world: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = await world.rows(
        "SELECT kind, target FROM statesvc.notice ORDER BY notice_id"
    )
    return found


async def fail(world: Any, subscription_id: UUID, times: int) -> None:
    outcomes = ReceiverOutcomes()
    for _ in range(times):
        outcomes.add(subscription_id, AttemptOutcome.TIMED_OUT, None)
    async with world.connection.transaction():
        ((now,),) = await world.rows("SELECT statesvc.clock()")
        assert await (await note(world.connection, outcomes, now=now)).rows() == []


async def succeed(world: Any, subscription_id: UUID) -> list[Any]:
    outcomes = ReceiverOutcomes()
    outcomes.add(subscription_id, AttemptOutcome.DELIVERED, 200)
    async with world.connection.transaction():
        ((now,),) = await world.rows("SELECT statesvc.clock()")
        recovered: list[Any] = await (await note(world.connection, outcomes, now=now)).rows()
    return recovered


async def test_gone_disables_with_an_action_and_a_notice_and_a_resume_sends_what_is_open(
    world: Any, receiver: Any
) -> None:
    subscription_id = await world.subscribe()
    shipment_id, _ = await world.shipment()
    await world.notify(shipment_id, 1)
    receiver.statuses(410, 204)
    await world.deliver()
    shown = await store.find(world.connection, subscription_id)
    assert shown is not None
    assert (shown.state, shown.disabled_why) == ("disabled", "the subscriber answered 410 Gone")
    assert shown.missed_since == shown.disabled_at
    ((batch_id, ordinal, actor, target, canonical),) = await world.rows(
        "SELECT batch_id, ordinal, actor, target, canonical FROM statesvc.action WHERE verb ="
        " 'subscription.disable'"
    )
    assert (ordinal, actor, target) == (0, "policy", f"subscription {subscription_id}")
    details = orjson.loads(canonical)["details"]
    assert (details["why"], details["open"]) == (shown.disabled_why, 1)
    assert details["open_since"] == details["open_until"]
    ((entries, leaf_hashes),) = await world.rows(
        "SELECT entries, leaf_hashes FROM statesvc.batch WHERE batch_id = %s", batch_id
    )
    assert (entries, leaf_hashes) == (1, hashlib.sha256(b"\0" + canonical).digest())
    assert await world.attempts() == [("gone", 410, 1)], "the try waits with the notification"
    assert await notices(world) == [("subscription.disabled", f"subscription {subscription_id}")]
    assert await world.outbox() == [(shipment_id, 1, 1, False)], "it still waits, for a resume"
    async with world.notifier():
        await world.advance(100_000)
        await asyncio.sleep(0.1)
        assert len(receiver.received) == 1
        await store.change_state(world.connection, subscription_id, "resume", actor="key:test")
        await world.wake()
        await until(lambda: len(receiver.received) == 2)


async def test_a_second_gone_of_the_same_crowd_says_nothing_again(
    world: Any, receiver: Any
) -> None:
    await world.subscribe()
    for _ in range(5):
        shipment_id, _ = await world.shipment()
        await world.notify(shipment_id, 1)
    receiver.statuses(410)
    await world.deliver()
    assert len(await notices(world)) == 1
    assert (
        len(await world.rows("SELECT FROM statesvc.action WHERE verb = 'subscription.disable'"))
        == 1
    )


async def test_after_a_day_of_failures_the_operator_is_warned_once_and_after_five_it_is_disabled(
    world: Any,
) -> None:
    subscription_id = await world.subscribe()
    await fail(world, subscription_id, 3)
    await world.advance(23 * HOUR)
    await fail(world, subscription_id, 1)
    assert await review(world.connection) == []
    await world.advance(HOUR)
    (warning,) = await review(world.connection)
    assert (warning.kind, warning.details["failures"], warning.details["last"]) == (
        "subscription.failing",
        4,
        "timed_out",
    )
    assert await review(world.connection) == []
    await world.advance(96 * HOUR)
    assert await review(world.connection) == [], "too few failures: nobody is disabled for silence"
    await fail(world, subscription_id, 16)
    ((since,),) = await world.rows("SELECT since FROM statesvc.subscription_failing")
    (disabled,) = await review(world.connection)
    assert disabled.kind == "subscription.disabled"
    assert disabled.details["why"].startswith("all 20 attempts failed since ")
    assert "POST .../replay" in disabled.details["what_to_do"]
    shown = await store.find(world.connection, subscription_id)
    assert shown is not None
    assert (shown.state, shown.missed_since, shown.disabled_why) == (
        "disabled",
        since,
        disabled.details["why"],
    )
    actions = await world.rows(
        "SELECT actor, target FROM statesvc.action WHERE verb = 'subscription.disable'"
    )
    assert actions == [("policy", f"subscription {subscription_id}")]
    assert await review(world.connection) == []
    shipment_id, _ = await world.shipment()
    assert await world.notify(shipment_id, 1) == 0, "a disabled subscription collects nothing"


async def test_one_delivery_ends_the_failing_and_is_reported_if_it_was_warned_of(
    world: Any,
) -> None:
    warned, unwarned = await world.subscribe(), await world.subscribe()
    await fail(world, warned, 1)
    await world.advance(30 * HOUR)
    await fail(world, warned, 1)
    await fail(world, unwarned, 1)
    await review(world.connection)
    assert [one.kind for one in await succeed(world, warned)] == ["subscription.recovered"]
    assert await succeed(world, unwarned) == []
    assert await world.rows("SELECT FROM statesvc.subscription_failing") == []


async def test_what_fails_after_the_last_delivery_of_a_group_begins_anew(world: Any) -> None:
    subscription_id = await world.subscribe()
    await fail(world, subscription_id, 7)
    outcomes = ReceiverOutcomes()
    for outcome in (
        AttemptOutcome.REFUSED,
        AttemptOutcome.DELIVERED,
        AttemptOutcome.REFUSED,
        AttemptOutcome.REFUSED,
    ):
        outcomes.add(subscription_id, outcome, 500)
    await world.advance(60)
    ((now,),) = await world.rows("SELECT statesvc.clock()")
    async with world.connection.transaction():
        await note(world.connection, outcomes, now=now)
    assert await world.rows("SELECT since, failures FROM statesvc.subscription_failing") == [
        (now, 2)
    ]


async def test_a_paused_one_is_not_judged_and_resuming_begins_anew(world: Any) -> None:
    subscription_id = await world.subscribe()
    await fail(world, subscription_id, 10)
    await world.advance(130 * HOUR)
    await fail(world, subscription_id, 10)
    await store.change_state(world.connection, subscription_id, "pause", actor="key:test")
    assert await review(world.connection) == []
    await store.change_state(world.connection, subscription_id, "resume", actor="key:test")
    await fail(world, subscription_id, 1)
    assert await review(world.connection) == []
    assert await notices(world) == []


async def test_two_reviews_at_a_time_disable_once(world: Any, pool: Any) -> None:
    subscription_id = await world.subscribe()
    await fail(world, subscription_id, 10)
    await world.advance(130 * HOUR)
    await fail(world, subscription_id, 10)
    async with pool.connection() as other, world.connection.transaction():
        assert len(await review(world.connection)) == 1
        assert await review(other) == [], "it is in the other's hands: nobody waits"
    assert len(await notices(world)) == 1


async def test_a_running_notifier_reviews(world: Any, receiver: Any) -> None:
    subscription_id = await world.subscribe()
    shipment_id, _ = await world.shipment()
    await fail(world, subscription_id, 30)
    await world.advance(130 * HOUR)
    receiver.statuses(500)
    await world.notify(shipment_id, 1)
    async with world.notifier(sweep_seconds=0.2):
        await until(lambda: notices(world))
    assert await notices(world) == [("subscription.disabled", f"subscription {subscription_id}")]


def test_a_notice_is_counted_by_its_kind() -> None:
    telemetry = Telemetry()
    log_notices(
        telemetry,
        [Notice(kind=NoticeKind.DISABLED, target="subscription x", details={"why": "it is gone"})],
    )
    assert b'statesvc_notices_total{type="subscription.disabled"} 1.0' in telemetry.exposition()
    telemetry.close()


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        ((23.9, 23.9, 500, False), []),
        ((24, 23, 2, False), [NoticeKind.FAILING]),
        ((24, 11.9, 500, False), []),
        ((30, 29, 9, True), []),
        ((119.9, 119, 500, True), []),
        ((120, 119, 20, True), [NoticeKind.DISABLED]),
        ((120, 119, 20, False), [NoticeKind.DISABLED]),
        ((120, 119, 19, True), []),
        ((120, 119, 19, False), [NoticeKind.FAILING]),
        ((500, 11.9, 500, True), []),
        ((500, 12, 20, True), [NoticeKind.DISABLED]),
    ],
)
async def test_warns_after_a_day_and_disables_after_five_with_failures_enough_and_apart(
    world: Any, failing: tuple[float, float, int, bool], expected: list[NoticeKind]
) -> None:
    hours, last_hours, failures, warned = failing
    subscription_id = await world.subscribe()
    await world.connection.execute(
        "INSERT INTO statesvc.subscription_failing (subscription_id, since, last_at, failures,"
        " last_outcome, warned_at) SELECT %s, f.since, f.since + make_interval(secs => %s), %s,"
        " 'timed_out', CASE WHEN %s THEN f.since END"
        " FROM (SELECT statesvc.clock() - make_interval(secs => %s) AS since) f",
        (subscription_id, last_hours * HOUR, failures, warned, hours * HOUR),
    )
    assert [notice.kind for notice in await review(world.connection)] == expected


def test_what_we_could_not_sign_or_left_out_is_no_fault_of_the_receiver() -> None:
    assert {outcome for outcome in AttemptOutcome if not blames_receiver(outcome)} == {
        *(AttemptOutcome.DELIVERED, AttemptOutcome.UNSIGNED, AttemptOutcome.CLIENT_MISSING),
    }

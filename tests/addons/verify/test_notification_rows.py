"""Notifications are what the log says: made, worded, waiting and ended, whatever became of them;
and what is done to them is named.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from statesvc.delivery.outcome import AttemptOutcome
from statesvc.notifier.coalesce import Backlog, Coalescer
from statesvc.notifier.operator_incidents import notify_operators
from statesvc.notifier.policy import disable
from statesvc.subscriptions import subscription_store as store
from tests.world.attack import attack, places, verify
from tests.world.deliver import deliver
from tests.world.log_builder import LogBuilder

pytestmark = pytest.mark.slow

NUMBER = "1Z0001"
INSERTED = (
    "INSERT INTO statesvc.notification SELECT shipment_id, sequence, gen_random_uuid(), created_at,"
    " occurred_at, webhook_id, type, carrier_id, tracking_number, from_status, to_status FROM"
    " statesvc.notification LIMIT 1"
)
QUEUED = "INSERT INTO statesvc.outbox SELECT subscription_id, shipment_id, sequence, now(), now()"


async def subscribe(log: LogBuilder, **wish: Any) -> UUID:
    request = store.SubscriptionRequest(url="https://subscriber.invalid/hook", **wish)
    subscription_id, _ = await store.create(
        log.connection, log.keyring, request, actor="key:test", owner="bootstrap"
    )
    return subscription_id


async def coalesce(log: LogBuilder, subscription_id: UUID) -> int:
    backlog = Backlog(subscription_id=subscription_id, too_many=True, too_old=datetime.now(UTC))
    return await Coalescer().coalesce(log.connection, backlog)


async def happenings(log: LogBuilder) -> None:
    """Make two subscribers, one of which has taken the first of three changes."""
    await subscribe(log)
    await subscribe(log)
    await log.parcel(NUMBER, steps=3)
    await deliver(log.connection, log.keyring)
    await log.seal()


@pytest.mark.usefixtures("own_processes")
async def test_what_waits_and_what_was_taken_is_what_the_log_says(
    database: Any, event_log: LogBuilder
) -> None:
    await happenings(event_log)
    assert places(verify(database)) == []
    assert places(verify(database, processes=2)) == []


@pytest.mark.usefixtures("own_processes")
async def test_incidents_that_were_sent_are_what_the_log_says(
    database: Any, event_log: LogBuilder
) -> None:
    await subscribe(event_log, types=["operator.unknown_codes"])
    await event_log.connection.execute(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, raw_code)"
        " VALUES ('code', 'unknown_code', 'dhl', statesvc.clock(), 'ZZ')"
    )
    await notify_operators(event_log.connection, writer="notifier-1")
    await deliver(event_log.connection, event_log.keyring)
    await event_log.connection.execute("DELETE FROM statesvc.dead_letter")
    assert await notify_operators(event_log.connection, writer="notifier-1") == 1
    await event_log.seal()
    assert places(verify(database)) == []


@pytest.mark.parametrize(
    ("done", "table", "field", "why"),
    [
        (
            "DELETE FROM statesvc.notification WHERE sequence = 1",
            "notification",
            "sequence",
            "deleted",
        ),
        (
            "UPDATE statesvc.notification SET to_status = 'delivered' WHERE sequence = 2",
            "notification",
            "to_status",
            "changed",
        ),
        (
            "UPDATE statesvc.notification SET type = 'shipment.updated' WHERE sequence = 2",
            "notification",
            "type",
            "changed",
        ),
        (
            "UPDATE statesvc.notification SET webhook_id = 'n1-1' WHERE sequence = 2",
            "notification",
            "webhook_id",
            "changed",
        ),
        (
            "UPDATE statesvc.notification SET tracking_number = '1Z0002' WHERE sequence = 2",
            "notification",
            "tracking_number",
            "event",
        ),
        (
            "UPDATE statesvc.notification SET occurred_at = now() WHERE sequence = 2",
            "notification",
            "occurred_at",
            "event",
        ),
        (
            "UPDATE statesvc.notification SET created_at = now() WHERE sequence = 2",
            "notification",
            "created_at",
            "event",
        ),
        (
            "DELETE FROM statesvc.outbox WHERE sequence = 3",
            "outbox",
            "sequence",
            "no entry of the log says how the notification ended",
        ),
        (
            INSERTED,
            *("notification", "sequence", "no fan-out of the log made it"),
        ),
        (
            QUEUED + " FROM statesvc.notification WHERE sequence = 1",
            *("outbox", "sequence", "more often than fan-outs"),
        ),
    ],
)
async def test_whatever_is_done_to_a_notification_is_named(
    database: Any, event_log: LogBuilder, done: str, table: str, field: str, *, why: str
) -> None:
    await happenings(event_log)
    await attack(database, done)
    faults = verify(database).faults
    assert faults
    assert {fault.table for fault in faults} == {table}
    assert all(field in fault.field and why in fault.why for fault in faults), faults


async def test_a_dead_letter_and_its_replay_are_covered(
    database: Any, event_log: LogBuilder
) -> None:
    await subscribe(event_log)
    await event_log.parcel(NUMBER, steps=1)
    await event_log.connection.execute("UPDATE statesvc.outbox SET attempts = 9")
    await deliver(event_log.connection, event_log.keyring, AttemptOutcome.REFUSED, 500)
    assert await event_log.rows("SELECT outcome FROM statesvc.attempt") == [("given_up",)]
    assert places(verify(database)) == []
    await attack(
        database,
        "INSERT INTO statesvc.outbox SELECT subscription_id, shipment_id, sequence, now(),"
        " now() FROM statesvc.attempt",
    )
    assert [fault.table for fault in verify(database).faults] == ["outbox"], (
        "sent again, and no entry says so"
    )


async def test_what_was_coalesced_ends_with_the_one_that_stands_for_it(
    database: Any, event_log: LogBuilder
) -> None:
    subscription_id = await subscribe(event_log)
    await event_log.parcel(NUMBER, steps=4)
    await deliver(event_log.connection, event_log.keyring, AttemptOutcome.REFUSED, 500)
    assert await coalesce(event_log, subscription_id) == 3
    assert places(verify(database)) == []
    await deliver(event_log.connection, event_log.keyring)
    assert await event_log.rows("SELECT count(*) FROM statesvc.attempt") == [(1,)]
    assert places(verify(database)) == []
    await attack(database, "DELETE FROM statesvc.attempt")
    assert {fault.table for fault in verify(database).faults} >= {"outbox", "batch"}


async def test_what_a_disabled_subscription_was_not_sent_still_waits(
    database: Any, event_log: LogBuilder
) -> None:
    subscription_id = await subscribe(event_log)
    await event_log.parcel(NUMBER, steps=2)
    async with event_log.connection.transaction():
        await disable(event_log.connection, [subscription_id], why="a test", now=datetime.now(UTC))
    assert places(verify(database)) == []
    await attack(database, "DELETE FROM statesvc.outbox WHERE sequence = 2")
    assert [fault.table for fault in verify(database).faults] == ["outbox"]


async def test_the_deletion_of_a_subscription_covers_what_is_open_and_nothing_else_does(
    database: Any, event_log: LogBuilder
) -> None:
    subscription_id = await subscribe(event_log)
    await event_log.parcel(NUMBER, steps=3)
    await deliver(event_log.connection, event_log.keyring)
    await store.change_state(event_log.connection, subscription_id, "delete", actor="key:test")
    await event_log.connection.execute("DELETE FROM statesvc.outbox")
    assert places(verify(database)) == []
    ((canonical,),) = await event_log.rows(
        "SELECT canonical FROM statesvc.action WHERE verb = 'subscription.delete'"
    )
    assert b'"open":2' in canonical
    await attack(database, "DELETE FROM statesvc.action WHERE verb = 'subscription.delete'")
    assert {fault.table for fault in verify(database).faults} == {"batch", "outbox"}

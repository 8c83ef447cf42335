"""`statesvc subscriptions`: notifications, and whose a subscription is."""

from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from tests.world.log_builder import LogBuilder
from tests.world.shell import Shell

ONE, OTHER = (
    UUID("aa000000-0000-4000-8000-000000000001"),
    UUID("ab000000-0000-4000-8000-000000000002"),
)
NOTIFICATIONS = ["n1-" + start.ljust(32, "0") for start in ("aa", "ab", "b")]


@pytest.fixture
async def told(event_log: LogBuilder, owner: AsyncConnection[Any], here: Shell) -> Shell:
    """Make two subscriptions, the first of which was told of three events of a parcel, the newest
    last.
    """
    await event_log.parcel("1Z5338FF0107231059")
    await owner.execute(
        "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url,"
        " sealed_secrets) SELECT id, statesvc.clock(), 'x', 'x', 'https://receiver.example/hook',"
        " '{}' FROM unnest(%s::uuid[]) id",
        ([ONE, OTHER],),
    )
    await owner.execute(
        "INSERT INTO statesvc.notification (shipment_id, sequence, subscription_id, created_at,"
        " occurred_at, webhook_id, type, carrier_id, tracking_number, from_status, to_status)"
        " SELECT e.shipment_id, e.version, %s, e.recorded_at, e.occurred_at,"
        " (%s::text[])[e.version], 'shipment.status_changed', e.carrier_id, k.number,"
        " 'unknown', 'in_transit' FROM statesvc.event e JOIN statesvc.stream k USING"
        " (shipment_id) WHERE k.number = '1Z5338FF0107231059' AND e.version <= 3",
        (ONE, NOTIFICATIONS),
    )
    return here


async def test_a_notification_is_listed_shown_and_sent_again_by_its_ids(told: Shell) -> None:
    assert [
        each["webhook_id"] for each in await told.json("subscriptions", "notifications", str(ONE))
    ] == NOTIFICATIONS[::-1]
    shown = await told.json("subscriptions", "notification", str(ONE), NOTIFICATIONS[1])
    assert shown["webhook_id"] == NOTIFICATIONS[1]
    assert NOTIFICATIONS[0] in await told("subscriptions", "resend", str(ONE), NOTIFICATIONS[0])
    (waiting,) = await told.json("subscriptions", "notifications", str(ONE), "--outcome", "waiting")
    assert waiting["webhook_id"] == NOTIFICATIONS[0]
    assert "(a UUID)" in await told("subscriptions", "show", "aa", exit_code=2)


async def test_who_makes_one_without_a_key_is_told_to_name_a_key(
    told: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESVC_SUBSCRIBER_ALLOW", "127.0.0.0/8")
    assert "--key-file" in await told(
        "subscriptions", "create", "--receiver", "http://127.0.0.1:9/hook", exit_code=1
    )

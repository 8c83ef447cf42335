"""`statesvc subscriptions`: ids by as many characters as are unique, of notifications too."""

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


async def test_ids_of_notifications_may_be_shortened(told: Shell) -> None:
    assert [
        each["webhook_id"] for each in await told.json("subscriptions", "notifications", "aa")
    ] == NOTIFICATIONS[::-1]
    for shortened in ("n1-ab", "n1-b", NOTIFICATIONS[1]):
        shown = await told.json("subscriptions", "notification", "aa0", shortened)
        assert shown["webhook_id"] == next(
            each for each in NOTIFICATIONS if each.startswith(shortened)
        )
    assert NOTIFICATIONS[0] in await told("subscriptions", "resend", str(ONE), "n1-aa")
    (waiting,) = await told.json("subscriptions", "notifications", "aa", "--outcome", "waiting")
    assert waiting["webhook_id"] == NOTIFICATIONS[0]


async def test_what_is_ambiguous_or_nothing_is_refused_with_what_there_is(told: Shell) -> None:
    for command in ("notification", "resend"):
        refused = await told("subscriptions", command, "aa", "n1-a", exit_code=2)
        assert (
            f"2 notifications begin with n1-a: {NOTIFICATIONS[1]}, {NOTIFICATIONS[0]}; name more"
            " of it" in refused
        )
        refused = await told("subscriptions", command, "aa", "n1-c", exit_code=1)
        assert (
            f"there is no notification n1-c: `statesvc subscriptions notifications {ONE}` names"
            " them" in refused
        )
        refused = await told("subscriptions", command, "a", "n1-aa", exit_code=2)
        assert f"2 subscriptions begin with a: {ONE}, {OTHER}; name more of it" in refused
    assert await told.json("subscriptions", "notifications", "aa", "--outcome", "waiting") == []


async def test_who_makes_one_without_a_key_is_told_to_name_a_key(
    told: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESVC_SUBSCRIBER_ALLOW", "127.0.0.0/8")
    assert "--key-file" in await told(
        "subscriptions", "create", "--receiver", "http://127.0.0.1:9/hook", exit_code=1
    )

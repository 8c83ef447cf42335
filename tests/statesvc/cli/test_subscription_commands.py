"""`statesvc subscriptions`: names beside ids, and ids by as many characters as are
unique, of notifications too.
"""

import base64
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from tests.world.database import Database
from tests.world.log_builder import log_builder
from tests.world.shell import Shell, use

ONE, OTHER = (
    UUID("aa000000-0000-4000-8000-000000000001"),
    UUID("ab000000-0000-4000-8000-000000000002"),
)
NOTIFICATIONS = ["n1-" + start.ljust(32, "0") for start in ("aa", "ab", "b")]


@pytest.fixture
async def told(database: Database, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make two subscriptions, the first of which was told of three events of a
    parcel, the newest last.
    """
    async with (
        log_builder(database) as going,
        await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner,
    ):
        await going.parcel("1Z5338FF0107231059")
        for subscription_id, name in ((ONE, "Night mails"), (OTHER, None)):
            await owner.execute(
                "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner,"
                " name, url, sealed_secrets) VALUES (%s, statesvc.clock(), 'x', 'x', %s,"
                " 'https://receiver.example/hook', '{}')",
                (subscription_id, name),
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
    use(database, monkeypatch)
    monkeypatch.setenv("STATESVC_MASTER_KEY", base64.b64encode(bytes(range(32))).decode())


@pytest.mark.usefixtures("told")
async def test_ids_of_notifications_may_be_shortened(shell: Shell) -> None:
    assert [
        each["webhook_id"] for each in await shell.json("subscriptions", "notifications", "aa")
    ] == NOTIFICATIONS[::-1]
    for shortened in ("n1-ab", "n1-b", NOTIFICATIONS[1]):
        shown = await shell.json("subscriptions", "notification", "aa0", shortened)
        assert shown["webhook_id"] == next(
            each for each in NOTIFICATIONS if each.startswith(shortened)
        )
    assert NOTIFICATIONS[0] in await shell("subscriptions", "resend", str(ONE), "n1-aa")
    (waiting,) = await shell.json("subscriptions", "notifications", "aa", "--outcome", "waiting")
    assert waiting["webhook_id"] == NOTIFICATIONS[0]


@pytest.mark.usefixtures("told")
async def test_what_is_ambiguous_or_nothing_is_refused_with_what_there_is(shell: Shell) -> None:
    for command in ("notification", "resend"):
        refused = await shell("subscriptions", command, "aa", "n1-a", exit_code=2)
        assert (
            f"2 notifications begin with n1-a: {NOTIFICATIONS[1]}, {NOTIFICATIONS[0]}; name more"
            " of it" in refused
        )
        refused = await shell("subscriptions", command, "aa", "n1-c", exit_code=1)
        assert (
            f"there is no notification n1-c: `statesvc subscriptions notifications {ONE}` names"
            " them" in refused
        )
        refused = await shell("subscriptions", command, "a", "n1-aa", exit_code=2)
        assert f"2 subscriptions begin with a: {ONE}, {OTHER}; name more of it" in refused
    assert await shell.json("subscriptions", "notifications", "aa", "--outcome", "waiting") == []


@pytest.mark.usefixtures("told")
async def test_who_makes_one_without_a_key_is_told_to_name_a_key(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESVC_SUBSCRIBER_ALLOW", "127.0.0.0/8")
    assert "--key-file" in await shell(
        "subscriptions", "create", "--receiver", "http://127.0.0.1:9/hook", exit_code=1
    )

"""`statesvc dead-letters` and `statesvc subscriptions`, as a person and as a script calls them."""

from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from events.errors import Cause
from tests.statesvc.api.test_dead_letter_replay import bury_messages
from tests.world.log_builder import LogBuilder
from tests.world.shell import Shell


@pytest.fixture
async def buried(event_log: LogBuilder) -> LogBuilder:
    """Bury five messages."""
    await bury_messages(event_log, *["not JSON"] * 5, cause=Cause.UNREADABLE)
    return event_log


async def test_a_dry_run_shows_the_plan_and_changes_nothing(
    here: Shell, buried: LogBuilder
) -> None:
    told = await here("dead-letters", "replay", "--cause", "unreadable", "--dry-run")
    assert "back into the inbox" in told
    assert "5 of 5 dead letters can be replayed" in told
    planned = await here.json("dead-letters", "replay", "--carrier", "ups", "--dry-run")
    assert (planned["remaining"], planned["plan"][0]["replayable"]) == (5, 5)
    assert "5 dead letters would be discarded" in await here(
        "dead-letters", "discard", "--carrier", "ups", "--why", "x", "--dry-run"
    )
    for table in ("inbox", "action"):
        assert await buried.rows(f"SELECT FROM statesvc.{table}") == []
    assert "No open dead letter matches." in await here(
        "dead-letters", "replay", "--carrier", "fedex", "--dry-run"
    )


@pytest.mark.usefixtures("buried")
async def test_a_few_are_replayed_then_the_rest(here: Shell) -> None:
    few = ("--cause", "unreadable", "--limit", "2", "--canary", "1")
    told, warned = await here.printed("dead-letters", "replay", *few)
    assert "2 dead letters replayed." in told
    assert "3 dead letters of the filter remain" in told
    assert "--canary has no effect" in warned
    done = await here.json("dead-letters", "replay", "--cause", "unreadable")
    assert (done["ended"], done["replayed"], done["refused"]) == ("done", 3, {})


@pytest.mark.usefixtures("buried")
async def test_a_dead_letter_is_shown_with_what_a_replay_means(here: Shell) -> None:
    assert "back into the inbox" in await here("dead-letters", "show", "1")
    assert "5 x not JSON" in await here("dead-letters", "groups")
    await here("dead-letters", "discard", "1", "--why", "their test system")
    assert "it was discarded" in await here("dead-letters", "show", "1")
    assert "it was discarded" in await here("dead-letters", "replay", "1", exit_code=1)
    await here("dead-letters", "discard", "--carrier", "ups", "--why", "their test system")
    assert "No dead letter is open." in await here("dead-letters", "groups")


async def test_wrong_use_is_refused(here: Shell) -> None:
    for arguments, told in (
        (("replay",), "name the dead letters"),
        (("replay", "1", "--carrier", "ups"), "not both"),
        (("discard", "1", "--why", " "), "say why"),
        *(
            ((action, "--carrier", "dhl_expres", "--why", "x"), "did you mean `dhl_express`?")
            for action in ("replay", "discard")
        ),
        *(
            ((action, "--carrier", "dhl_expres"), "did you mean `dhl_express`?")
            for action in ("list", "groups")
        ),
    ):
        assert told in await here("dead-letters", *arguments, exit_code=2), arguments


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

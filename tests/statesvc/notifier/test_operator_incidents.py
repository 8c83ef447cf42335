"""Incidents as notifications `operator.*`: each begins once and is over once, whoever dies."""

import asyncio
import hashlib
from collections import Counter
from typing import Any

import orjson
import pytest
from psycopg import AsyncConnection

from statesvc.notifier.operator_incidents import TYPES, notify_operators
from tests.world.waiting import until

LEASE_SECONDS = 46
PUSHED = """
    INSERT INTO statesvc.ack_count
        (carrier_id, minute, process, accepted, duplicates, refused, last_at)
    SELECT 'ups', date_trunc('minute', c), 'w', 60, 0, 0, c
    FROM (SELECT statesvc.clock() - interval '%s hours') t(c)"""
BEGIN = (
    """
    INSERT INTO statesvc.subscription_failing
    SELECT subscription_id, statesvc.clock(), statesvc.clock(), 7, 'refused', 500, statesvc.clock()
    FROM statesvc.subscription WHERE name = 'failing'""",
    """
    UPDATE statesvc.subscription SET disabled_at = statesvc.clock(), disabled_why = 'it is gone'
    WHERE name = 'disabled'""",
    "INSERT INTO statesvc.lane (carrier_id) VALUES ('ups')",
    PUSHED % 26,
    """
    INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, raw_code)
    VALUES ('code', 'unknown_code', 'dhl', statesvc.clock(), 'ZZ')""",
    """
    INSERT INTO statesvc.unsealed (batch_id, recorded_from)
    VALUES (-1, statesvc.clock() - interval '2 minutes')""",
    """
    INSERT INTO statesvc.spool (name, messages, oldest_at, seen_at, held_seconds)
    SELECT 'files', 3, c - interval '2 minutes', c, 60 FROM statesvc.clock() c""",
    """
    INSERT INTO statesvc.notice (kind, target, created_at, details)
    VALUES ('rollout.turned_back', 'carrier gls', statesvc.clock(), '{}')""",
)
HEAL = (
    "DELETE FROM statesvc.subscription_failing",
    "UPDATE statesvc.subscription SET disabled_at = NULL",
    PUSHED % 0,
    "UPDATE statesvc.dead_letter SET resolved_at = statesvc.clock(), resolution = 'discarded'",
    "DELETE FROM statesvc.unsealed",
    "UPDATE statesvc.spool SET messages = 0, oldest_at = NULL",
    "UPDATE statesvc.notice SET seen_at = statesvc.clock()",
)


async def run(world: Any, statements: tuple[str, ...]) -> None:
    for statement in statements:
        await world.connection.execute(statement)


async def states(world: Any) -> dict[tuple[str, str], int]:
    return Counter(
        await world.rows("SELECT type, to_status FROM statesvc.notification WHERE sequence < 0")
    )


async def notify(world: Any) -> int:
    return await notify_operators(world.connection, writer="notifier-1")


@pytest.mark.usefixtures("own_processes")
async def test_each_incident_is_sent_once_and_its_end_once_by_notifiers_that_die_meanwhile(
    world: Any, receiver: Any, master_key: bytes
) -> None:
    operator = await world.subscribe(types=TYPES)
    await world.subscribe()
    await world.subscribe(name="failing", types=["shipment.updated"])
    await world.subscribe(name="disabled", types=["shipment.updated"])
    for state, statements in (("open", BEGIN), ("recovered", HEAL)):
        await run(world, statements)
        await world.killed_at_first_delivery(master_key)
        await world.advance(LEASE_SECONDS)
        await run(world, ("DELETE FROM statesvc.unsealed WHERE batch_id > 0",))
        async with world.notifier():
            await until(lambda: _is_sent(world))
        assert {kind for kind, to in await states(world) if to == state} == set(TYPES)
    assert set((await states(world)).values()) == {1}
    got = {each.webhook_id: orjson.loads(each.body) for each in receiver.received}
    sent = Counter((body["type"], body["data"]["state"]) for body in got.values())
    assert sent == Counter((kind, state) for kind in TYPES for state in ("open", "recovered"))
    assert len({(body["data"]["incident_id"], body["type"]) for body in got.values()}) == len(TYPES)
    receiver.received[0].verify(world.secrets[operator])
    assert await world.rows("SELECT * FROM statesvc.operator_incident") == []


async def _is_sent(world: Any) -> bool:
    return not await world.outbox()


async def test_notifiers_that_compare_at_once_begin_an_incident_once(world: Any) -> None:
    await world.subscribe(types=["operator.unknown_codes"])
    await run(world, BEGIN)
    async with await AsyncConnection.connect(
        world.database.service_dsn, autocommit=True
    ) as another:
        made = await asyncio.gather(notify(world), notify_operators(another, writer="notifier-2"))
    assert sum(made) == 1
    assert await notify(world) == 0
    assert await states(world) == {("operator.unknown_codes", "open"): 1}


async def test_a_notification_names_an_action_of_the_log_and_a_page(world: Any) -> None:
    subscription_id = await world.subscribe(types=["operator.unknown_codes"])
    await run(world, BEGIN)
    await notify(world)
    ((canonical, webhook_id, observed),) = await world.rows(
        "SELECT a.canonical, n.webhook_id, n.observed FROM statesvc.action a"
        " CROSS JOIN statesvc.notification n WHERE a.verb = 'incident.open'"
    )
    action, data = orjson.loads(canonical), observed["incident"]
    assert (action["actor"], action["target"]) == ("policy", "carrier dhl")
    assert data["page"] == "UnknownCodes"
    assert action["details"]["incident_id"] == data["incident_id"]
    ((expected,),) = await world.rows(
        "SELECT statesvc.webhook_id(%s, %s)",
        subscription_id,
        hashlib.sha256(b"\0" + canonical).digest(),
    )
    assert webhook_id == expected


async def test_without_the_types_nothing_is_sent_and_nothing_is_open(world: Any) -> None:
    await world.subscribe()
    await run(world, BEGIN)
    assert await notify(world) == 0
    assert await world.rows("SELECT * FROM statesvc.operator_incident") == []


async def test_a_carrier_stays_silent_until_it_pushes_again(world: Any) -> None:
    await world.subscribe(types=["operator.carrier_silent"])
    await run(world, BEGIN)
    assert await notify(world) == 1
    await world.advance(24 * 3600)
    assert await notify(world) == 0, "yesterday it was silent too"
    await run(world, HEAL)
    assert await notify(world) == 1


async def test_the_end_goes_to_those_that_got_the_beginning(world: Any) -> None:
    first = await world.subscribe(types=["operator.unknown_codes"])
    await run(world, BEGIN)
    await notify(world)
    await world.subscribe(types=["operator.unknown_codes"])
    await run(world, HEAL)
    assert await notify(world) == 1
    assert await world.rows("SELECT DISTINCT subscription_id FROM statesvc.notification") == [
        (first,)
    ]


async def test_what_is_about_its_bound_begins_and_ends_once(world: Any) -> None:
    types = ["operator.sealer_stopped", "operator.spool_in_use"]
    await world.subscribe(types=types)
    made = []
    for seconds, messages in ((59, 2), (61, 2), (59, 1), (61, 2), (16, 1), (14, 0), (59, 1)):
        await run(
            world,
            (
                "DELETE FROM statesvc.unsealed",
                "DELETE FROM statesvc.spool",
                f"""
                INSERT INTO statesvc.unsealed (batch_id, recorded_from)
                VALUES (-1, statesvc.clock() - interval '{seconds} seconds')""",
                f"""
                INSERT INTO statesvc.spool (name, messages, oldest_at, seen_at, held_seconds)
                SELECT 'files', {messages}, c - interval '{seconds} seconds', c, 60
                FROM statesvc.clock() c""",
            ),
        )
        made.append(await notify(world))
        await run(world, ("DELETE FROM statesvc.unsealed",))
    assert made == [0, 2, 0, 0, 0, 2, 0]
    assert set((await states(world)).values()) == {1}

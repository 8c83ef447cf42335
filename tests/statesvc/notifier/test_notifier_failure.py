"""Failures of a notifier, its database or its subscriber in the middle of its work."""

import asyncio
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from aiohttp import web
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.delivery.retry_schedule import ATTEMPTS_MAX
from statesvc.notifier.attempts import AttemptResult
from statesvc.notifier.turn import Turn, TurnResult, take_turn
from tests.world.waiting import until

LEASE_SECONDS = 46
CLAIM_SLOWLY = b"""
CREATE FUNCTION statesvc.test_rest() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.03); RETURN NULL; END $$;
CREATE TRIGGER test_rest AFTER UPDATE ON statesvc.outbox FOR EACH STATEMENT EXECUTE FUNCTION statesvc.test_rest()"""


@pytest.mark.usefixtures("own_processes")
async def test_killed_between_send_and_settle_it_is_sent_again_with_the_same_id(
    world: Any, receiver: Any, master_key: bytes
) -> None:
    await world.notified_shipment(1)
    await world.killed_at_first_delivery(master_key)
    assert await world.attempts() == []
    async with world.notifier() as notifier:
        await asyncio.sleep(0.1)
        assert len(receiver.received) == 1, "the dead process still holds the lease"
        await world.advance(LEASE_SECONDS)
        await until(lambda: len(receiver.received) == 2 and notifier.in_flight == 0)
    assert len({got.webhook_id for got in receiver.received}) == 1
    assert await world.attempts() == [("delivered", 204, 2)], (
        "the lost try is charged: it was counted when it was claimed"
    )


async def test_a_notification_that_kills_each_notifier_is_buried_unsent(
    world: Any, receiver: Any
) -> None:
    await world.notified_shipment(1, 2)
    await world.connection.execute(
        "UPDATE statesvc.outbox SET attempts = %s WHERE sequence = 1", (ATTEMPTS_MAX,)
    )
    async with world.notifier():
        await until(lambda: receiver.received)
    assert [got.data["sequence"] for got in receiver.received] == [2]
    ((detail,),) = await world.rows("SELECT detail FROM statesvc.dead_letter")
    assert detail == "10 attempts, the last ones ended without a verdict: the notifier died"


async def test_what_is_sent_is_settled_once_when_the_connection_is_lost_meanwhile(
    world: Any, receiver: Any
) -> None:
    shipment_id = await world.notified_shipment(1)

    async def drop_connections(_got: Any) -> web.StreamResponse:
        async with await AsyncConnection.connect(
            world.database.service_dsn, autocommit=True
        ) as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
                " current_database() AND application_name IN ('notifier test', 'statesvc listener')"
            )
        return web.Response()

    receiver.answer = drop_connections
    async with world.notifier() as notifier:
        await until(lambda: receiver.received and notifier.in_flight == 0)
        receiver.answer = None
        await world.notify(shipment_id, 2)
        await world.wake()
        await until(lambda: len(receiver.received) == 2 and notifier.in_flight == 0)
    assert await world.attempts() == [("delivered", 200, 1), ("delivered", 204, 1)]


async def test_an_unknown_commit_records_no_attempt_twice(
    world: Any, receiver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.notified_shipment(1)
    await world.notify((await world.shipment())[0], 1)
    calls: list[tuple[bool, int]] = []

    async def answer_one_first(got: Any) -> web.StreamResponse:
        await until(lambda: calls or got is receiver.received[0])
        return web.Response(status=204)

    async def commit_then_fail(*args: Any, **kwargs: Any) -> Any:
        turn = args[2]
        if turn.ended:
            calls.append((turn.settled_before, len(turn.ended)))
        done = await take_turn(*args, **kwargs)
        if turn.ended and len(calls) == 1:
            # the other one ends before the next try
            await asyncio.sleep(0.2)
            raise psycopg.OperationalError("the connection broke during the commit")
        return done

    monkeypatch.setattr("statesvc.notifier.notifier_loop.take_turn", commit_then_fail)
    receiver.answer = answer_one_first
    async with world.notifier() as notifier:
        await until(lambda: len(calls) == 3 and notifier.in_flight == 0)
    assert calls == [(False, 1), (True, 1), (False, 1)], "the group is tried again unchanged"
    assert await world.attempts() == [("delivered", 204, 1)] * 2


async def test_an_attempt_whose_lease_ran_out_is_recorded_but_settles_nothing(
    world: Any, receiver: Any
) -> None:
    await world.notified_shipment(1)
    go = asyncio.Event()

    async def slow_at_first(_got: Any) -> web.StreamResponse:
        if len(receiver.received) == 1:
            await go.wait()
            return web.Response(status=500)
        return web.Response(status=200)

    async def settled() -> bool:
        return not await world.outbox()

    receiver.answer = slow_at_first
    async with world.notifier() as frozen:
        await until(lambda: receiver.received)
        await world.database.clock.advance(LEASE_SECONDS)
        async with world.notifier() as second:
            await until(lambda: len(receiver.received) == 2 and second.in_flight == 0)
            await until(settled)
        go.set()
        await until(lambda: frozen.in_flight == 0)
    assert sorted(await world.attempts()) == [("delivered", 200, 2), ("refused", 500, 1)]
    assert await world.ends() == [("delivered", 2), ("late", 1)]
    assert await world.outbox() == []


async def test_an_attempt_that_outlived_its_lease_is_settled_beside_the_next_one(
    world: Any, receiver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that slept: its notifier has claimed again what it was still sending."""
    await world.notified_shipment(1)
    ended: list[AttemptResult] = []

    async def both_at_once(connection: Any, keyring: Keyring, turn: Turn) -> TurnResult:
        ended.extend(turn.ended)
        both = tuple(ended) if turn.ended and len(ended) == 2 else ()
        return await take_turn(connection, keyring, replace(turn, ended=both))

    async def answer(_got: Any) -> web.StreamResponse:
        await until(lambda: len(receiver.received) == 2)
        return web.Response(status=204)

    monkeypatch.setattr("statesvc.notifier.notifier_loop.take_turn", both_at_once)
    receiver.answer = answer
    async with world.notifier() as notifier:
        await until(lambda: receiver.received)
        await world.advance(LEASE_SECONDS)
        await until(lambda: len(ended) == 2 and notifier.in_flight == 0)
    assert await world.outbox() == []
    assert sorted(await world.attempts()) == [("delivered", 204, 1), ("delivered", 204, 2)]
    assert await world.ends() == [("delivered", 2)]


async def test_a_secret_that_does_not_open_sends_nothing_unsigned(
    world: Any, receiver: Any
) -> None:
    subscription_id = await world.subscribe()
    await world.connection.execute(
        "UPDATE statesvc.subscription SET sealed_secrets = ARRAY['\\x00'::bytea] WHERE"
        " subscription_id = %s",
        (subscription_id,),
    )
    shipment_id, _ = await world.shipment()
    await world.notify(shipment_id, 1)

    async def attempted() -> bool:
        return list(await world.attempts()) == [("unsigned", None, 1)]

    async with world.notifier():
        await until(attempted)
    assert receiver.received == []


@pytest.mark.slow
async def test_slots_that_become_free_during_a_claim_are_not_forgotten(
    world: Any, receiver: Any
) -> None:
    await world.subscribe()
    for _ in range(40):
        await world.notify((await world.shipment())[0], 1)
    async with await AsyncConnection.connect(world.database.owner_dsn, autocommit=True) as owner:
        await owner.execute(CLAIM_SLOWLY)

    async def answer_by_and_by(_got: Any) -> web.StreamResponse:
        await asyncio.sleep(0.02 * (len(receiver.received) % 4))
        return web.Response()

    receiver.answer = answer_by_and_by
    async with world.notifier(in_flight_max=16):
        await until(lambda: len(receiver.received) == 40, 5)


async def test_what_is_too_old_for_its_type_is_buried_at_its_next_attempt_unsent(
    world: Any, receiver: Any
) -> None:
    await world.subscribe(give_up_after={"shipment.status_changed": 3600.0})
    await world.subscribe(give_up_after={"shipment.updated": 3600.0})
    shipment_id, _ = await world.shipment()
    await world.notify(shipment_id, 1)
    await world.database.clock.advance(3600)
    await world.deliver()
    assert len(receiver.received) == 1, "the other subscription has no such bound"
    ((detail,),) = await world.rows("SELECT detail FROM statesvc.dead_letter")
    assert (
        detail
        == "too old for its type after 0 attempts: `give_up_after_seconds` of the subscription"
    )
    assert await world.attempts() == [("delivered", 204, 1)]
    assert await world.outbox() == []


async def test_what_had_happened_too_long_ago_is_not_sent_and_is_listed_as_cancelled(
    world: Any, receiver: Any
) -> None:
    await world.subscribe(max_age_seconds=86_400.0)
    await world.notified_shipment(1)

    async def ended() -> bool:
        return sorted(await world.ends()) == [("cancelled", 0), ("delivered", 1)]

    async with world.notifier():
        await until(ended)
    assert len(receiver.received) == 1, "the other subscription has no such bound"
    assert await world.rows("SELECT FROM statesvc.dead_letter") == []
    assert await world.outbox() == []

"""The notifier against a real database and a real subscriber on loopback."""

import asyncio
import hashlib
import time
from datetime import timedelta
from typing import Any

import orjson
import pytest
from aiohttp import web
from standardwebhooks.webhooks import WebhookVerificationError

from events.crypto.keyring import ended_context
from events.crypto.sealing import commitment, unsalted
from events.entry.kinds import leaf_hash_of
from statesvc.delivery.retry_schedule import ATTEMPTS_MAX, DELAYS_SECONDS
from statesvc.log.json_compression import decompress_json, open_part
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.recorded_attempts import read_attempts
from tests.world.waiting import until

pytestmark = pytest.mark.slow


async def test_a_change_is_delivered_once_and_signed(world: Any, receiver: Any) -> None:
    subscription_id = await world.subscribe()
    shipment_id, _ = await world.shipment()
    async with world.notifier() as notifier:
        await world.notify(shipment_id, 1)
        await world.wake()
        await until(lambda: receiver.received and notifier.in_flight == 0)
        await world.wake()
    (got,) = receiver.received
    got.verify(world.secrets[subscription_id])
    assert got.data["sequence"] == 1
    assert got.webhook_id.startswith("n1-")
    assert got.headers["Content-Type"] == "application/json"
    assert await world.outbox() == []
    assert await world.attempts() == [("delivered", 204, 1)]


async def test_the_time_in_the_signature_is_the_databases_not_this_machines(
    world: Any, receiver: Any
) -> None:
    shipment_id = await world.notified_shipment()
    await world.advance(3600)
    async with world.notifier():
        await world.notify(shipment_id, 1)
        await world.wake()
        await until(lambda: receiver.received)
    assert abs(int(receiver.received[0].headers["webhook-timestamp"]) - 3600 - time.time()) < 60


async def test_a_shipment_is_notified_in_order_and_only_its_own_failure_blocks_it(
    world: Any, receiver: Any
) -> None:
    await world.subscribe()
    blocked, _ = await world.shipment()
    free, _ = await world.shipment()
    await world.notify(blocked, 1, 2, 3)
    await world.notify(free, 4, 5, 6)

    async def refuse_the_first(got: Any) -> web.StreamResponse:
        refused = (
            got.data["sequence"] == 1
            and sum(r.data["sequence"] == 1 for r in receiver.received) == 1
        )
        return web.Response(status=500 if refused else 200)

    receiver.answer = refuse_the_first
    async with world.notifier():
        await until(lambda: len(receiver.received) == 4)
        await asyncio.sleep(0.1)
        assert sorted(got.data["sequence"] for got in receiver.received) == [1, 4, 5, 6]
        assert [got.data["sequence"] for got in receiver.received if got.data["sequence"] > 3] == [
            4,
            5,
            6,
        ]
        assert await world.rows(
            "SELECT DISTINCT available_at > statesvc.clock() FROM statesvc.outbox"
        ) == [(True,)], "those behind it with it"
        await world.advance(7)
        await until(lambda: len(receiver.received) == 7)
    assert [got.data["sequence"] for got in receiver.received][4:] == [1, 2, 3]


async def test_a_slow_subscriber_holds_at_most_a_quarter_and_delays_nobody(
    world: Any, receiver: Any
) -> None:
    slow = await world.subscribe(url=receiver.url.replace("/hook", "/slow"))
    hurried = asyncio.Event()

    async def by_path(got: Any) -> web.StreamResponse:
        if got.path == "/slow":
            await hurried.wait()
        return web.Response()

    receiver.answer = by_path
    for _ in range(20):
        await world.notify((await world.shipment())[0], 1)
    async with world.notifier(in_flight_max=16) as notifier:
        await until(lambda: receiver.received)
        await asyncio.sleep(0.1)
        assert len(receiver.received) == notifier.in_flight <= 4
        await store.change_state(world.connection, slow, "pause", actor="key:test")
        await world.subscribe(carriers=["ups"])
        for _ in range(30):
            await world.notify((await world.shipment())[0], 1)
        await world.wake()
        await until(lambda: sum(got.path == "/hook" for got in receiver.received) == 30)
        assert sum(got.path == "/slow" for got in receiver.received) <= 4
        hurried.set()


async def test_after_the_last_retry_there_is_a_dead_letter_and_the_next_one_goes_ahead(
    world: Any, receiver: Any
) -> None:
    await world.notified_shipment(1, 2)

    async def refuse_the_first(got: Any) -> web.StreamResponse:
        return web.Response(status=500 if got.data["sequence"] == 1 else 200)

    receiver.answer = refuse_the_first

    async def attempted(count: int) -> bool:
        return len(await world.attempts()) >= count

    async with world.notifier():
        for count, delay in enumerate(DELAYS_SECONDS, start=1):
            await until(lambda count=count: attempted(count))
            await world.advance(delay - 2)
            await asyncio.sleep(0.05)
            assert len(receiver.received) == count, "too early"
            await world.advance(3 + delay * 0.2)
        await until(lambda: attempted(ATTEMPTS_MAX + 1))
    assert [got.data["sequence"] for got in receiver.received] == [1] * ATTEMPTS_MAX + [2]
    assert len({(got.webhook_id, got.body) for got in receiver.received}) == 2
    assert await world.outbox() == []
    assert await world.rows(
        "SELECT kind, cause, carrier_id, webhook_id, attempts, detail FROM statesvc.dead_letter"
    ) == [
        (
            *(
                "notification",
                "delivery_exhausted",
                "ups",
                receiver.received[0].webhook_id,
                ATTEMPTS_MAX,
            ),
            "10 attempts, the last one: refused, status 500",
        )
    ]


async def test_a_paused_subscription_gets_nothing(world: Any, receiver: Any) -> None:
    await world.notified_shipment(1)
    ((subscription_id,),) = await world.rows("SELECT subscription_id FROM statesvc.subscription")
    await store.change_state(world.connection, subscription_id, "pause", actor="key:test")
    async with world.notifier():
        await world.wake()
        await asyncio.sleep(0.1)
    assert receiver.received == []


async def test_a_rotation_signs_with_both_secrets_until_the_grace_is_over(
    world: Any, receiver: Any
) -> None:
    subscription_id = await world.subscribe()
    old = world.secrets[subscription_id]
    new = await store.rotate(
        world.connection,
        world.keyring,
        subscription_id,
        grace=timedelta(hours=24),
        actor="key:test",
    )
    shipment_id, _ = await world.shipment()
    await world.notify(shipment_id, 1)
    async with world.notifier():
        await until(lambda: receiver.received)
        receiver.received[0].verify(old)
        receiver.received[0].verify(new)
        await world.advance(24 * 3600 + 1)
        await world.notify(shipment_id, 2)
        await world.wake()
        await until(lambda: len(receiver.received) == 2)
        receiver.received[1].verify(new)
        with pytest.raises(WebhookVerificationError):
            receiver.received[1].verify(old)
        assert " " not in receiver.received[1].headers["webhook-signature"]


async def test_an_attempt_is_an_entry_of_the_log_that_proves_what_was_sent(
    world: Any, receiver: Any
) -> None:
    await world.subscribe()
    shipment_id, key = await world.shipment()
    receiver.statuses(200)
    await world.notify(shipment_id, 1)
    await world.deliver()
    ((stored, sealed, batch_id, ordinal, recorded_at),) = await world.rows(
        "SELECT canonical, sealed_part, batch_id, ordinal, recorded_at FROM statesvc.attempt"
    )
    ((entries, leaf_hashes, writer, batch_recorded_at),) = await world.rows(
        "SELECT entries, leaf_hashes, writer, recorded_from FROM statesvc.batch WHERE batch_id"
        " = %s",
        batch_id,
    )
    canonical = decompress_json(stored)
    assert (entries, leaf_hashes, writer, batch_recorded_at, ordinal) == (
        1,
        leaf_hash_of(canonical),
        "notifier-1",
        recorded_at,
        0,
    )
    document = orjson.loads(canonical)
    webhook_id = receiver.received[0].webhook_id
    assert (document["webhook_id"], document["outcome"]) == (webhook_id, "delivered")
    (made,) = document["tries"]
    assert (made["number"], made["outcome"], made["status_code"]) == (1, "delivered", 200)
    salted_part = open_part(key, sealed, ended_context(shipment_id, webhook_id, 1))
    assert commitment(salted_part).hex() == document["part_commitment"]
    (part,) = orjson.loads(unsalted(salted_part))["tries"]
    assert part["response"] == "said the subscriber"
    assert (
        hashlib.sha256(bytes.fromhex(part["body_salt"]) + receiver.received[0].body).hexdigest()
        == made["body_commitment"]
    )


async def test_of_an_erased_shipment_the_attempt_keeps_no_salt(world: Any) -> None:
    await world.subscribe()
    shipment_id, _ = await world.shipment(erased=True)
    await world.notify(shipment_id, 1)
    await world.deliver()
    ((sealed, canonical),) = await world.rows("SELECT sealed_part, canonical FROM statesvc.attempt")
    assert sealed is None
    assert orjson.loads(decompress_json(canonical)).get("part_commitment") is None


async def test_two_notifiers_send_each_notification_once(world: Any, receiver: Any) -> None:
    await world.subscribe()
    for _ in range(40):
        await world.notify((await world.shipment())[0], 1, 2, 3)
    async with world.notifier(), world.notifier():
        await until(lambda: len(receiver.received) >= 120)
        await asyncio.sleep(0.1)
    assert len(receiver.received) == 120
    assert len({got.webhook_id for got in receiver.received}) == 120
    order: dict[tuple[str, str], list[int]] = {}
    notified = await world.rows("SELECT webhook_id, shipment_id FROM statesvc.notification")
    of_shipment = {webhook_id: str(shipment_id) for webhook_id, shipment_id in notified}
    for got in receiver.received:
        order.setdefault((got.path, of_shipment[got.webhook_id]), []).append(got.data["sequence"])
    assert all(sequences == [1, 2, 3] for sequences in order.values())


async def test_tries_at_what_ends_with_its_subscription_get_an_entry_all_the_same(
    world: Any, receiver: Any
) -> None:
    subscription_id = await world.subscribe()
    shipment_id, _ = await world.shipment()
    receiver.statuses(500)
    await world.notify(shipment_id, 1, 2)
    await world.deliver()
    assert await world.ends() == []
    await store.change_state(world.connection, subscription_id, "delete", actor="key:test")

    async def empty() -> bool:
        return not await world.outbox()

    async with world.notifier():
        await until(empty)
    assert len(receiver.received) == 1
    assert await world.ends() == [("cancelled", 1)], (
        "the one that was never tried is covered by the entry of the deletion"
    )
    assert await world.attempts() == [("refused", 500, 1)]
    assert await world.rows("SELECT FROM statesvc.open_attempt") == []


async def test_what_the_receiver_answered_is_stored_sealed_without_its_secrets(
    world: Any, receiver: Any
) -> None:
    subscription_id = await world.subscribe()
    shipment_id, _ = await world.shipment()

    async def answer(_got: Any) -> web.StreamResponse:
        headers = {
            "Set-Cookie": "session=secret",
            "Authorization": "Bearer secret",
            "X-Request-Id": "7",
        }
        return web.Response(status=422, text="no such Alice" + "x" * 30_000, headers=headers)

    receiver.answer = answer
    await world.notify(shipment_id, 1)
    await world.deliver()
    (attempt,) = await read_attempts(world.connection, subscription_id, before=None, limit=10)
    response = attempt.response(world.keyring)
    assert response is not None
    assert response.text == "no such Alice" + "x" * (20_000 - len("no such Alice"))
    assert ("x-request-id", "7") in response.headers
    assert not {"set-cookie", "authorization"} & {name for name, _ in response.headers}
    assert attempt.sealed_part is not None
    assert b"Alice" not in attempt.sealed_part
    await world.connection.execute(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock()"
    )
    (erased,) = await read_attempts(world.connection, subscription_id, before=None, limit=10)
    assert erased.response(world.keyring) is None

"""Back to the broker, as it came: what was not processed, or all that a backup holds."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import aio_pika
import aiormq
import pytest
import redis
from pamqp.commands import Basic

from statesvc.addons.shovel.amqp_properties import wire_properties
from tests.addons.shovel.conftest import World
from tests.world.brokers import RabbitMq, Redis
from tests.world.celery_fleet import TASK, has_run, make_app, ran, running_worker
from tests.world.shovel_story import ALL_QUEUES, body, produce

pytestmark = pytest.mark.asyncio(loop_scope="package")

Waiting = list[tuple[str, bytes, Basic.Properties]]


async def waiting(server: RabbitMq, *queues: str, leave: bool = True) -> Waiting:
    """Return what is in the queues: name, body, properties."""
    connection = await aiormq.connect(server.address)
    channel = await connection.channel()
    found = []
    for queue in queues:
        while (
            message := await channel.basic_get(queue, no_ack=not leave)
        ).delivery.name == "Basic.GetOk":
            found.append((queue, bytes(message.body), message.header.properties))
    await connection.close()
    return found


def comparable(messages: Waiting) -> list[tuple[str, bytes, bytes]]:
    return sorted(
        (queue, content, wire_properties(properties)) for queue, content, properties in messages
    )


async def test_a_backup_restores_into_the_empty_broker_byte_for_byte(
    rabbitmq: RabbitMq, world: World
) -> None:
    await asyncio.to_thread(produce, rabbitmq.address, 40, native=False)
    odd = aio_pika.Message(
        b"\x00\xff",
        headers={"deep": {"a": [1, 2**40, 1.5, True, None, "é"]}},
        message_id="m",
        expiration=3_600_000,
    )
    async with await aio_pika.connect(rabbitmq.address) as connection:
        await (await connection.channel()).default_exchange.publish(odd, "fast")
    queues = ("fast", "slow")
    before = await waiting(rabbitmq, *queues)
    assert len(before) == 41
    await world.shovel(rabbitmq.address, "--queue", "fast", "--queue", "slow", "--batch", "7")
    assert await waiting(rabbitmq, *queues) == []
    assert "41 messages restored" in await world.shell(
        "shovel", "--to", rabbitmq.address, "--backup", str(world.backup), "--restore"
    )
    after = await waiting(rabbitmq, *queues, leave=False)
    assert comparable(after) == comparable(before)
    assert [message_id for _, _, properties in after if (message_id := properties.message_id)] == [
        "m"
    ]


async def test_what_was_not_processed_returns_and_a_worker_runs_it_at_its_eta(
    rabbitmq: RabbitMq, world: World, tmp_path: Path
) -> None:
    sent = await asyncio.to_thread(produce, rabbitmq.address, 24)
    soon = await asyncio.to_thread(
        produce, rabbitmq.address, 6, native=False, first=100, countdown=60
    )
    await world.shovel(rabbitmq.address, *ALL_QUEUES, "--delayed")
    query = (
        "SELECT b.headers ->> 'celery-task-id', q.message_id FROM statesvc.inbox q JOIN"
        " statesvc.body b USING (message_id)"
    )
    by_task = dict(await world.rows(query))
    processed, busy = list(sent)[:3], list(sent)[3:5]
    await world.rows(
        "DELETE FROM statesvc.inbox WHERE message_id = ANY (%s) RETURNING 1",
        [by_task[one] for one in processed],
    )
    lease = (
        "UPDATE statesvc.inbox SET token = gen_random_uuid(), worker = 'w' WHERE message_id = ANY"
        " (%s) RETURNING 1"
    )
    await world.rows(lease, [by_task[one] for one in busy])
    back = ("shovel", "--to", rabbitmq.address, "--backup", str(world.backup))
    dry = await world.shell.json(*back, "--dry-run", exit_code=1)
    assert (dry["returned"], dry["processed"], dry["busy"]) == (25, 3, 2)
    assert await world.shell.json(*back, exit_code=1) == {
        "returned": 25,
        "again": 0,
        "processed": 3,
        "busy": 2,
        "elsewhere": 0,
    }
    assert {one.task_id for one in await world.arrived()} == set(busy)
    assert await world.dead_letters() == []
    # nothing is returned twice, and what is taken again is new
    assert (await world.shell.json(*back, exit_code=1))["returned"] == 0
    await world.shovel(rabbitmq.address, *ALL_QUEUES, "--delayed")
    arrived = {one.task_id: one for one in await world.arrived()}
    everything = sent | soon
    assert arrived.keys() == everything.keys() - set(processed)
    assert [
        one
        for one in arrived.values()
        if one.task_id not in busy and not one.is_as_sent(everything[one.task_id])
    ] == []
    assert (await world.shell.json(*back, exit_code=1))["returned"] == 25
    ledger = tmp_path / "ledger"
    due = {
        task_id
        for task_id, one in everything.items()
        if (one.eta is None or one.eta.timestamp() < time.time()) and task_id in arrived
    } - set(busy)
    async with running_worker(rabbitmq.address, ledger):
        await has_run(ledger, len(due))
    assert {one["id"] for one in ran(ledger)} == due
    assert len(ran(ledger)) == len(due)
    await world.shovel(rabbitmq.address, *ALL_QUEUES, "--delayed")


async def test_after_a_crash_on_the_way_back_the_next_run_publishes_what_was_under_way(
    rabbitmq: RabbitMq, world: World
) -> None:
    await asyncio.to_thread(produce, rabbitmq.address, 4, native=False)
    await world.shovel(rabbitmq.address, "--queue", "fast", "--queue", "slow")
    # as it is between the transaction that takes out and the broker's confirms
    await world.rows(
        "SELECT statesvc.bury_locked(q.message_id, 'returning', '') FROM (SELECT message_id FROM"
        " statesvc.inbox LIMIT 2) q"
    )
    back = ("shovel", "--to", rabbitmq.address, "--backup", str(world.backup))
    assert "2 of them had been on their way" in await world.shell(*back)
    assert len(await waiting(rabbitmq, "fast", "slow", leave=False)) == 4
    assert (await world.dead_letters(), await world.arrived()) == ([], [])


async def test_a_missing_queue_and_a_wrong_broker_are_named_before_anything_leaves(
    rabbitmq: RabbitMq, world: World, redis_server: Redis
) -> None:
    async with await aio_pika.connect(rabbitmq.address) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("doomed", durable=True)
        await channel.default_exchange.publish(
            aio_pika.Message(b'[["x"],{},{}]', headers={"task": TASK, "id": "1"}), "doomed"
        )
        await world.shovel(rabbitmq.address, "--queue", "doomed")
        await queue.delete()
    back = ("shovel", "--backup", str(world.backup), "--to")
    assert "no queue 'doomed' in this virtual host at amqp://127.0.0.1" in await world.shell(
        *back, rabbitmq.address, exit_code=1
    )
    assert (await world.shell.json(*back, redis_server.address))["elsewhere"] == 1
    assert len(await world.arrived()) == 1


async def test_tasks_return_to_redis_as_they_were(redis_server: Redis, world: World) -> None:
    with redis.Redis(port=redis_server.port) as client:
        client.flushall()
        app = make_app(redis_server.address)
        await asyncio.to_thread(
            lambda: [
                app.tasks[TASK].apply_async([body(number)], queue="fast", priority=3)
                for number in range(5)
            ]
        )
        before: list[Any] = client.lrange("fast\x06\x163", 0, -1)
        await world.shovel(redis_server.address, "--queue", "fast")
        assert await world.shell.json(
            "shovel", "--to", redis_server.address, "--backup", str(world.backup)
        ) == json.loads('{"returned": 5, "again": 0, "processed": 0, "busy": 0, "elsewhere": 0}')
        assert client.lrange("fast\x06\x163", 0, -1) == before


async def test_what_did_not_map_comes_in_from_the_backup_once_it_does(
    world: World,
) -> None:
    task = {"task": "shop.other", "id": "7", "args": ["<x/>"]}
    assert "1 to the dead letters" in await world.shovel_lines(task)
    wider = '[[rules]]\ntask = "shop.*"\ncarrier = "ups"\nbody = "args.0"\n'
    again = (
        "shovel",
        "--restore",
        "--backup",
        str(world.backup),
        "--mapping",
        str(world.write_mapping(wider)),
    )
    assert "1 taken: 1 into the inbox" in await world.shell(*again)
    assert "1 were there already" in await world.shell(*again)
    assert await world.dead_letters() == []
    assert [one.body for one in await world.arrived()] == [b"<x/>"]

"""Tasks of a real Celery on a real RabbitMQ come into the inbox: each once, at its ETA,
acknowledged when they are safe.
"""

import asyncio
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import aio_pika
import pytest

from statesvc.addons.shovel.backup import read_backup
from tests.addons.shovel.conftest import World
from tests.world.brokers import RabbitMq
from tests.world.celery_fleet import OTHER, TASK, declare_delays, make_app
from tests.world.shovel_story import MAPPING, assert_all_arrived, body, produce

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def publish(
    server: RabbitMq, queue: str, *messages: aio_pika.Message, declare: bool = True
) -> None:
    async with await aio_pika.connect(server.address) as connection:
        channel = await connection.channel()
        if declare:
            await channel.declare_queue(queue, durable=True)
        for message in messages:
            await channel.default_exchange.publish(message, queue)


async def in_queue(server: RabbitMq, queue: str) -> int:
    async with await aio_pika.connect(server.address) as connection:
        declared = await (await connection.channel()).declare_queue(queue, passive=True)
        return declared.declaration_result.message_count or 0


async def test_mixed_tasks_arrive_once_at_their_eta(rabbitmq: RabbitMq, world: World) -> None:
    sent = await asyncio.to_thread(produce, rabbitmq.address, 100, native=False)
    queues = ("--queue", "fast", "--queue", "slow")
    assert "100 taken: 100 into the inbox" in await world.shovel(
        rabbitmq.address, *queues, "--batch", "17"
    )
    assert_all_arrived(sent, await world.arrived())
    assert "0 taken" in await world.shovel(rabbitmq.address, *queues)
    assert sum(len(batch) for batch in read_backup(world.backup)) == 100


async def test_native_delayed_delivery_comes_with_its_eta_and_nothing_for_other_queues(
    rabbitmq: RabbitMq, world: World
) -> None:
    await asyncio.to_thread(declare_delays, rabbitmq.address, "fast-quorum", "slow-quorum")
    app = make_app(rabbitmq.address, quorum=True, names=("fast-quorum", "slow-quorum"))

    def produce() -> dict[str, int]:
        return {
            app.tasks[TASK].apply_async([body(seconds)], queue=queue, countdown=seconds).id: seconds
            for seconds, queue in (
                (3600, "fast-quorum"),
                (86400 * 5, "slow-quorum"),
                (7 * 3600 + 11, "fast-quorum"),
            )
        }

    before = datetime.now(UTC)
    sent = await asyncio.to_thread(produce)
    for dry_run in (["--dry-run"], []):
        answer = await world.shovel(
            rabbitmq.address, "--queue", "fast-quorum", "--delayed", *dry_run, exit_code=1
        )
        assert (
            "delays a message for 'slow-quorum', which is none of the queues that were named"
            in answer
        )
    await world.shovel(
        rabbitmq.address, "--queue", "fast-quorum", "--queue", "slow-quorum", "--delayed"
    )
    arrived = {one.task_id: one for one in await world.arrived()}
    assert arrived.keys() == sent.keys()
    for task_id, seconds in sent.items():
        assert (
            timedelta(0)
            <= arrived[task_id].available_at - before - timedelta(seconds=seconds)
            < timedelta(seconds=20)
        )


async def test_a_transfer_that_is_repeated_has_no_effect(rabbitmq: RabbitMq, world: World) -> None:
    queue = f"again-{uuid4().hex[:8]}"
    task = aio_pika.Message(
        b'[["one"], {}, {"chain": null}]',
        headers={"task": TASK, "id": "t-1", "eta": "2031-01-01T00:00:00"},
        content_type="application/json",
    )
    await publish(rabbitmq, queue, task, task)
    assert "1 into the inbox, 0 to the dead letters, 1 were there already" in await world.shovel(
        rabbitmq.address, "--queue", queue
    )
    # as after a crash between the commit and the acknowledgement, days later: a carrier's
    # retry is forgotten by then
    await world.database.clock.advance(60 * 86400)
    await publish(rabbitmq, queue, task)
    assert "0 into the inbox, 0 to the dead letters, 1 were there already" in await world.shovel(
        rabbitmq.address, "--queue", queue
    )
    (arrived,) = await world.arrived()
    assert (arrived.body, arrived.available_at) == (b"one", datetime(2031, 1, 1, tzinfo=UTC))


async def test_what_does_not_map_is_a_dead_letter_whole_and_comes_in_once_it_maps(
    rabbitmq: RabbitMq, world: World
) -> None:
    queue = f"odd-{uuid4().hex[:8]}"
    follow_up = b'[["one"], {}, {"callbacks": [{"task": "x"}]}]'
    await publish(
        rabbitmq,
        queue,
        aio_pika.Message(
            b"[[], {}, {}]", headers={"task": OTHER, "id": "t-1"}, content_type="application/json"
        ),
        aio_pika.Message(
            follow_up, headers={"task": TASK, "id": "t-2"}, content_type="application/json"
        ),
        aio_pika.Message(
            b'[["late"], {}, {}]',
            headers={"task": TASK, "id": "t-3", "expires": "2020-01-01T00:00:00+00:00"},
        ),
        aio_pika.Message(b"[[7], {}, {}]", headers={"task": TASK, "id": "t-4"}),
        aio_pika.Message(b"plain"),
    )
    assert "5 taken: 0 into the inbox, 5 to the dead letters" in await world.shovel(
        rabbitmq.address, "--queue", queue
    )
    dead = await world.dead_letters()
    assert {cause for cause, _ in dead} == {"unmapped_task"}
    assert sorted(detail for _, detail in dead) == [
        "no rule is for a message with these headers",
        f"no rule is for task '{OTHER}'",
        "rule 1: there is no body at args.0, or not in text",
        (
            f"task '{TASK}' has callbacks, which would not run; `follow_ups = \"drop\"` in rule 1"
            " allows it"
        ),
        f"task '{TASK}' has expired",
    ]
    assert await world.arrived() == []


REFUSALS = {
    "pickle": (
        aio_pika.Message(
            pickle.dumps([["x"], {}, {}]), content_type="application/x-python-serialize"
        ),
        "",
        "Python pickle",
    ),
    "unmapped": (
        aio_pika.Message(b"plain"),
        'unmapped = "refuse"\n',
        "no rule is for a message with these headers",
    ),
    "broken": (
        aio_pika.Message(b"[", headers={"task": TASK, "id": "1"}, content_type="application/json"),
        "",
        "is not the JSON",
    ),
}


@pytest.mark.parametrize("kind", REFUSALS)
async def test_a_refused_message_stops_the_transfer_and_nothing_is_taken(
    rabbitmq: RabbitMq, world: World, kind: str
) -> None:
    refused, setting, words = REFUSALS[kind]
    queue = f"refused-{uuid4().hex[:8]}"
    good = aio_pika.Message(
        b'[["one"], {}, {}]', headers={"task": TASK, "id": "t-1"}, content_type="application/json"
    )
    await publish(rabbitmq, queue, good, refused)
    answer = await world.shovel(
        rabbitmq.address, "--queue", queue, exit_code=1, mapping=setting + MAPPING
    )
    assert words in answer
    assert await in_queue(rabbitmq, queue) == 2
    assert await world.arrived() == []


async def test_bad_input_is_named_and_nothing_is_taken(
    rabbitmq: RabbitMq, world: World, tmp_path: Path
) -> None:
    queue = f"bad-{uuid4().hex[:8]}"
    await publish(
        rabbitmq, queue, aio_pika.Message(b'[["one"], {}, {}]', headers={"task": TASK, "id": "t-1"})
    )
    port = rabbitmq.port
    for source, name, mapping, words in (
        (
            f"amqp://guest:guest@127.0.0.1:{port}",
            "absent",
            MAPPING,
            "the broker has no queue 'absent'",
        ),
        (f"amqp://guest:wrong@127.0.0.1:{port}", queue, MAPPING, "refuses the login of 'guest'"),
        (f"amqp://guest:guest@127.0.0.1:{port}/absent", queue, MAPPING, "no such virtual host"),
        (
            "amqp://guest:guest@127.0.0.1:1",
            queue,
            MAPPING,
            "no broker answers at amqp://127.0.0.1:1",
        ),
        ("ftp://127.0.0.1", queue, MAPPING, "nothing is taken from 'ftp'"),
        (
            rabbitmq.address,
            queue,
            MAPPING.replace("carrier", "carier"),
            "rules 1 carier means nothing here (did you mean 'carrier'?)",
        ),
        (
            rabbitmq.address,
            queue,
            MAPPING.replace("ups", "upps"),
            "names no carrier: 'upps' (did you mean 'ups'?)",
        ),
        (
            rabbitmq.address,
            queue,
            MAPPING.replace("args.0", "arg.0"),
            "'arg.0' begins with none of args, kwargs, headers, body",
        ),
        (rabbitmq.address, queue, "[[rules", "is no TOML"),
    ):
        answer = await world.shovel(source, "--queue", name, exit_code=1, mapping=mapping)
        assert words in answer
        assert "wrong" not in answer
    (tmp_path / "backup").rename(tmp_path / "other")
    (tmp_path / "backup").write_text("a file")
    assert "nothing can be written" in await world.shovel(
        rabbitmq.address, "--queue", queue, exit_code=1
    )
    assert await in_queue(rabbitmq, queue) == 1

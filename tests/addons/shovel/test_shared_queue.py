"""One queue on Redis with three kinds of tasks, one of which is ours: the others stay, in their
places, for the worker that runs them.
"""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.addons.shovel.conftest import World
from tests.addons.shovel.test_redis_transfer import LATER, hold
from tests.world.brokers import Redis
from tests.world.celery_fleet import OTHER, TASK, THIRD, has_run, make_app, ran, running_worker
from tests.world.shovel_story import MAPPING, Transfer, body, count_inbox, ended

pytestmark = pytest.mark.asyncio(loop_scope="package")

SHARED = 'unmapped = "leave"\n' + MAPPING
QUEUE = ("--queue", "fast")
PAGES = 1300
"""Tasks in the queue: more than two pages of the list."""
BATCHES = 400
"""Tasks in the queue: some batches of ours, in which the shovel is killed."""


async def produce(redis_server: Redis, count: int) -> tuple[set[str], list[str]]:
    """Produce tasks of ours and of theirs, by turns: ours, mail, stock.

    Return their ids, theirs in order.
    """
    app = make_app(redis_server.address)

    def publish() -> list[str]:
        with app.producer_pool.acquire(block=True) as producer:
            return [
                app.send_task(
                    (TASK, OTHER, THIRD)[number % 3],
                    [body(number)],
                    queue="fast",
                    producer=producer,
                ).id
                for number in range(count)
            ]

    sent = await asyncio.to_thread(publish)
    return set(sent[::3]), [task_id for number, task_id in enumerate(sent) if number % 3]


def waiting(client: Any, name: str = "fast") -> list[str]:
    """Return the ids of the tasks in a list, the oldest first."""
    return [json.loads(value)["headers"]["id"] for value in reversed(client.lrange(name, 0, -1))]


async def test_ours_are_moved_and_theirs_keep_their_places_until_their_worker_runs_them(
    redis_server: Redis, client: Any, world: World, tmp_path: Path
) -> None:
    ours, theirs = await produce(redis_server, PAGES)
    answer = await world.shovel(redis_server.address, *QUEUE, "--batch", "100", mapping=SHARED)
    assert f"{len(ours)} taken: {len(ours)} into the inbox, 0 to the dead letters" in answer
    assert {one.task_id for one in await world.arrived()} == ours
    assert waiting(client) == theirs
    ledger = tmp_path / "ledger"
    async with running_worker(redis_server.address, ledger):
        await has_run(ledger, len(theirs))
    assert sorted(one["id"] for one in ran(ledger)) == sorted(theirs)


async def test_a_shovel_that_is_killed_again_and_again_takes_each_of_ours_once_and_none_of_theirs(
    redis_server: Redis, world: World, tmp_path: Path
) -> None:
    ours, theirs = await produce(redis_server, BATCHES)
    moving = Transfer(dsn=world.database.service_dsn, folder=tmp_path, source=redis_server.address)
    more = (*QUEUE, "--batch", "15")
    for part in range(1, 4):
        process = await moving.start(*more, mapping=SHARED)
        # another process's
        while process.returncode is None and await count_inbox(moving.dsn) < len(ours) * part // 5:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        process.kill()
        await process.wait()
    await ended(await moving.start(*more, mapping=SHARED))
    assert sorted(one.task_id for one in await world.arrived()) == sorted(ours)
    ledger = tmp_path / "ledger"
    async with running_worker(redis_server.address, ledger):
        await has_run(ledger, len(theirs))
    assert sorted(one["id"] for one in ran(ledger)) == sorted(theirs)


async def test_what_their_dead_workers_held_does_not_stand_before_ours(
    redis_server: Redis, client: Any, world: World
) -> None:
    ours, theirs = await produce(redis_server, 9)
    for _ in range(9):
        hold(client, since=time.time() - 4000)
    assert "3 taken: 3 into the inbox" in await world.shovel(
        redis_server.address, *QUEUE, "--batch", "1", mapping=SHARED
    )
    assert {one.task_id for one in await world.arrived()} == ours
    assert sorted(
        json.loads(value)[0]["headers"]["id"] for value in client.hvals("unacked")
    ) == sorted(theirs)


async def test_what_an_earlier_mapping_took_and_left_behind_returns_to_the_old_end(
    redis_server: Redis, client: Any, world: World
) -> None:
    ours, theirs = await produce(redis_server, 6)
    for _ in range(6):
        client.lmove("fast", "statesvc-shovel.0.fast", "RIGHT", "LEFT")
    assert "2 taken: 2 into the inbox" in await world.shovel(
        redis_server.address, *QUEUE, mapping=SHARED
    )
    assert {one.task_id for one in await world.arrived()} == ours
    assert waiting(client) == theirs
    assert client.keys("statesvc-shovel*") == []


async def test_a_dry_run_counts_what_stays_and_what_a_worker_holds_for_its_eta(
    redis_server: Redis, client: Any, world: World, tmp_path: Path
) -> None:
    app = make_app(redis_server.address)
    await asyncio.to_thread(
        lambda: [
            app.send_task(TASK, [body(number)], queue="slow", eta=LATER) for number in range(4)
        ]
    )
    async with running_worker(redis_server.address, tmp_path / "ledger"):
        while client.hlen("unacked") < 4:  # noqa: ASYNC110 - the hash is another process's
            await asyncio.sleep(0.05)
        app.send_task(OTHER, ["x"], queue="unread")
        report = json.loads(
            await world.shovel(
                redis_server.address, "--queue", "slow", "--dry-run", "--json", mapping=SHARED
            )
        )
        assert (report["waiting"], report["unacknowledged"], report["classified"]) == (0, 4, 4)
        assert [
            (one["at"], one["becomes"], one["due"], one["messages"]) for one in report["classes"]
        ] == [("worker", "ups", "later", 4)]
    stays = json.loads(
        await world.shovel(
            redis_server.address, "--queue", "unread", "--dry-run", "--json", mapping=SHARED
        )
    )
    assert [one["becomes"] for one in stays["classes"]] == [
        f"stays there: no rule is for task {OTHER!r}"
    ]
    text = await world.shovel(redis_server.address, "--queue", "slow", "--dry-run", mapping=SHARED)
    assert (
        "0 messages wait, 4 more are with workers, unacknowledged" in text
        or "4 messages wait" in text
    )


async def test_a_task_that_cannot_be_read_stays_where_the_mapping_says_so(
    redis_server: Redis, client: Any, world: World
) -> None:
    app = make_app(redis_server.address)
    await asyncio.to_thread(lambda: app.send_task(OTHER, ["x"], queue="fast", serializer="pickle"))
    refused = await world.shovel(redis_server.address, *QUEUE, mapping=SHARED, exit_code=1)
    assert "can't be read" in refused
    assert "0 taken" in await world.shovel(
        redis_server.address, *QUEUE, mapping='unreadable = "leave"\n' + SHARED
    )
    assert client.llen("fast") == 1


async def test_rabbitmq_hands_over_what_comes_next_so_leave_is_refused(world: World) -> None:
    refused = await world.shovel("amqp://127.0.0.1:1/%2F", *QUEUE, mapping=SHARED, exit_code=1)
    assert "route what is to be taken into a queue of its own" in refused

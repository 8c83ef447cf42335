"""Tasks of a real Celery on a real Redis: lists by priority, and what workers and a killed
shovel held.
"""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.addons.shovel.conftest import World
from tests.world.brokers import Redis
from tests.world.celery_fleet import OTHER, TASK, make_app, running_worker
from tests.world.shovel_story import body

pytestmark = pytest.mark.asyncio(loop_scope="package")

LATER = datetime(2031, 5, 4, 3, 2, 1, 987654, tzinfo=UTC)


async def produce(redis_server: Redis, count: int) -> dict[str, datetime | None]:
    app = make_app(redis_server.address)

    def publish() -> dict[str, datetime | None]:
        sent: dict[str, datetime | None] = {}
        for number in range(count):
            given: dict[str, Any] = ({}, {"priority": number % 10}, {"eta": LATER})[number % 3]
            result = app.tasks[TASK].apply_async(
                [body(number)], queue=("fast", "slow")[number % 2], **given
            )
            sent[result.id] = given.get("eta")
        return sent

    return await asyncio.to_thread(publish)


async def test_every_list_is_taken_at_its_eta(
    redis_server: Redis, client: Any, world: World
) -> None:
    sent = await produce(redis_server, 60)
    answer = await world.shovel(
        redis_server.address, "--queue", "fast", "--queue", "slow", "--batch", "7"
    )
    assert "60 taken: 60 into the inbox" in answer
    arrived = {one.task_id: one for one in await world.arrived()}
    assert arrived.keys() == sent.keys()
    assert {one.body.decode() for one in arrived.values()} == {body(number) for number in range(60)}
    for task_id, eta in sent.items():
        assert arrived[task_id].available_at == eta or (
            eta is None and arrived[task_id].available_at == arrived[task_id].received_at
        )
    assert {key for key in client.scan_iter("*") if not key.startswith(b"_kombu")} == set()
    assert "has no queue 'absent'; Celery declared fast, slow" in await world.shovel(
        redis_server.address, "--queue", "absent", exit_code=1
    )


async def test_tasks_that_a_worker_held_come_with_their_etas_once_it_has_ended(
    redis_server: Redis, client: Any, world: World, tmp_path: Path
) -> None:
    # a worker takes tasks with an ETA at once, and holds them in `unacked` until they are due
    app = make_app(redis_server.address)
    later = await asyncio.to_thread(
        lambda: {
            app.tasks[TASK].apply_async([body(n)], queue="slow", eta=LATER).id for n in range(6)
        }
    )
    given = (redis_server.address, "--queue", "fast", "--queue", "slow")
    async with running_worker(redis_server.address, tmp_path / "ledger") as worker:
        while client.hlen("unacked") < len(later):  # noqa: ASYNC110 - the hash is another process's
            await asyncio.sleep(0.05)
        assert "0 taken" in await world.shovel(*given)
        worker.terminate()
        await worker.wait()
    assert "6 taken: 6 into the inbox" in await world.shovel(*given)
    assert {(one.task_id, one.available_at) for one in await world.arrived()} == {
        (task_id, LATER) for task_id in later
    }


async def test_what_a_killed_shovel_held_is_taken_by_the_next_one(
    redis_server: Redis, client: Any, world: World
) -> None:
    await produce(redis_server, 6)
    for process in (0, 3):
        client.lmove("fast", f"statesvc-shovel.{process}.fast", "RIGHT", "LEFT")
    assert "6 taken: 6 into the inbox" in await world.shovel(
        redis_server.address, "--queue", "fast", "--queue", "slow"
    )
    assert client.keys("statesvc-shovel*") == []


async def test_a_dry_run_counts_and_takes_nothing(
    redis_server: Redis, client: Any, world: World
) -> None:
    await produce(redis_server, 30)
    app = make_app(redis_server.address)
    await asyncio.to_thread(lambda: app.tasks[OTHER].apply_async(["x"], queue="slow"))
    given = ("--queue", "fast", "--queue", "slow", "--dry-run")
    report = json.loads(await world.shovel(redis_server.address, *given, "--json"))
    assert (report["waiting"], report["classified"]) == (31, 31)
    later = [one for one in report["classes"] if one["due"] == "later"]
    assert sum(one["messages"] for one in later) == 10
    assert [
        one["messages"]
        for one in report["classes"]
        if one["becomes"].startswith("dead letter: no rule is for task")
    ] == [1]
    assert (
        client.llen("fast") + sum(client.llen(f"fast\x06\x16{number}") for number in range(1, 10))
        == 15
    )
    assert await world.arrived() == []


async def test_a_file_of_json_lines_goes_the_same_way(world: World) -> None:
    mapping = (
        '[[rules]]\nheaders = { source = "hub-*" }\ncarrier_from = "headers.source"\ncarriers = {'
        ' hub-ups = "ups" }\nbody = "body"\n'
    )
    both = (
        mapping + '[[rules]]\ntask = "shop.*"\ncarrier = "fedex"\nbody = "kwargs.raw"\nencoding ='
        ' "base64"\n'
    )
    lines = [
        {
            "id": "a",
            "body": "<x/>",
            "headers": {"source": "hub-ups"},
            "eta": "2031-05-04T03:02:01.987654+00:00",
        },
        {"id": "b", "task": "shop.x", "args": [], "kwargs": {"raw": "PHkvPg=="}},
        {"id": "c", "body": "<x/>", "headers": {"source": "hub-dhl"}},
    ]
    counted = await world.shovel_lines(*lines, given=("--dry-run",), mapping=both)
    assert "dead letter: rule 1: headers.source names no carrier" in counted
    assert "3 taken: 2 into the inbox, 1 to the dead letters" in await world.shovel_lines(
        *lines, mapping=both
    )
    assert {(one.carrier_id, one.body) for one in await world.arrived()} == {
        ("ups", b"<x/>"),
        ("fedex", b"<y/>"),
    }
    assert [one.available_at for one in await world.arrived() if one.carrier_id == "ups"] == [LATER]

"""A transfer that is killed again and again: each message once.

Next to old workers: each is handled by one side.
"""

import asyncio
from pathlib import Path

import pytest

from tests.addons.shovel.conftest import World
from tests.world.brokers import RabbitMq
from tests.world.celery_fleet import has_run, ran, running_worker
from tests.world.shovel_story import ALL_QUEUES, Transfer, assert_all_arrived, produce

# tests/soak/test_shovel.py is the same on a larger scale
pytestmark = [pytest.mark.asyncio(loop_scope="package"), pytest.mark.soak]


async def test_killed_on_the_way_everything_arrives_once(
    rabbitmq: RabbitMq, world: World, tmp_path: Path
) -> None:
    sent = await asyncio.to_thread(produce, rabbitmq.address, 1200)
    transfer = Transfer(world.database.service_dsn, tmp_path, rabbitmq.address)
    await transfer.run_with_kills(len(sent), 2, *ALL_QUEUES, "--delayed", "--batch", "50")
    assert_all_arrived(sent, await world.arrived())


async def test_next_to_a_worker_every_task_is_handled_by_one_side(
    rabbitmq: RabbitMq, world: World, tmp_path: Path
) -> None:
    sent = await asyncio.to_thread(produce, rabbitmq.address, 240, native=False, priority=1)
    ledger = tmp_path / "ledger"
    transfer = Transfer(world.database.service_dsn, tmp_path, rabbitmq.address)
    async with running_worker(rabbitmq.address, ledger, seconds=0.04):
        await has_run(ledger, 1)
        await transfer.finish(
            "--queue",
            "fast",
            "--queue",
            "slow",
            "--batch",
            "10",
            "--prefetch",
            "20",
            "--rate",
            "200",
        )
    # what the worker had in its hands when it ended
    await transfer.finish("--queue", "fast", "--queue", "slow")
    by_worker, by_us = (
        [one["id"] for one in ran(ledger)],
        [one.task_id for one in await world.arrived()],
    )
    assert len(by_worker) + len(by_us) == len({*by_worker, *by_us}) == len(sent)
    assert min(len(by_worker), len(by_us)) > 0

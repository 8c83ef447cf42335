"""100,000 tasks of Celery come over: at speed; with everything killed and restarted on the way;
next to old workers; and back again.
"""

import asyncio
import os
from pathlib import Path
from typing import Final

import aiormq
import pytest

from statesvc.addons.shovel.way_back import stored_messages
from tests.soak.server import SoakServer
from tests.world.brokers import RabbitMq, running_rabbitmq
from tests.world.celery_fleet import has_run, ran, running_worker
from tests.world.shovel_story import (
    ALL_QUEUES,
    Sent,
    Transfer,
    assert_all_arrived,
    ended,
    produce,
    read_inbox,
    say,
    timed,
)

pytestmark = pytest.mark.soak

TASKS: Final = int(os.environ.get("STATESVC_SOAK_TASKS", "100000"))
KILLS: Final = 10
RETURNED: Final = TASKS // 10
QUEUES: Final = (*ALL_QUEUES, "--delayed")


async def published(broker: RabbitMq, count: int, **kinds: bool) -> dict[str, Sent]:
    async with timed("published by Celery", count):
        return await asyncio.to_thread(produce, broker.address, count, **kinds)


async def test_all_arrive_as_they_were_at_speed(own_server: SoakServer, tmp_path: Path) -> None:
    async with running_rabbitmq(tmp_path / "rabbitmq") as broker:
        sent = await published(broker, TASKS)
        transfer = Transfer(own_server.dsns.service_dsn, tmp_path, broker.address)
        async with timed("shovelled", TASKS):
            await transfer.finish(*QUEUES)
        assert_all_arrived(sent, await read_inbox(own_server.dsns.service_dsn))
        assert sum(1 for _ in stored_messages(transfer.backup)) == TASKS


async def test_killed_ten_times_with_broker_and_database_restarted_each_arrives_once(
    own_server: SoakServer, tmp_path: Path
) -> None:
    async with running_rabbitmq(tmp_path / "rabbitmq") as broker:
        sent = await published(broker, TASKS)

        async def restart_broker() -> None:
            await broker.kill()
            await broker.start()

        transfer = Transfer(own_server.dsns.service_dsn, tmp_path, broker.address)
        async with timed(f"shovelled with {KILLS} kills", TASKS):
            await transfer.run_with_kills(
                TASKS, KILLS, *QUEUES, between=[restart_broker, own_server.crash]
            )
        # whatever a broken connection held is in its queue again by now
        await transfer.finish(*QUEUES)
        assert_all_arrived(sent, await read_inbox(own_server.dsns.service_dsn))


async def test_next_to_old_workers_every_task_is_handled_by_one_side(
    own_server: SoakServer, tmp_path: Path
) -> None:
    async with running_rabbitmq(tmp_path / "rabbitmq") as broker:
        sent = await asyncio.to_thread(
            produce, broker.address, TASKS // 10, native=False, priority=1
        )
        transfer, ledger = (
            Transfer(own_server.dsns.service_dsn, tmp_path, broker.address),
            tmp_path / "ledger",
        )
        async with running_worker(broker.address, ledger, seconds=0.002):
            await has_run(ledger, 1)
            await transfer.finish(
                "--queue",
                "fast",
                "--queue",
                "slow",
                "--batch",
                "50",
                "--prefetch",
                "100",
                "--rate",
                "400",
            )
        await transfer.finish("--queue", "fast", "--queue", "slow")
        by_worker, by_us = (
            [one["id"] for one in ran(ledger)],
            [one.task_id for one in await read_inbox(own_server.dsns.service_dsn)],
        )
        assert len(by_worker) + len(by_us) == len({*by_worker, *by_us}) == len(sent)
        assert min(len(by_worker), len(by_us)) > 0
        say(f"{len(by_worker):,} by the worker, {len(by_us):,} by the shovel")


async def test_what_was_not_processed_returns_and_a_worker_runs_it_at_its_eta(
    own_server: SoakServer, tmp_path: Path
) -> None:
    async with running_rabbitmq(tmp_path / "rabbitmq") as broker:
        async with timed("published by Celery", RETURNED):
            # long enough for the way there and back
            sent = await asyncio.to_thread(
                produce, broker.address, RETURNED, native=False, countdown=300
            )
        transfer = Transfer(own_server.dsns.service_dsn, tmp_path, broker.address)
        await transfer.finish("--queue", "fast", "--queue", "slow")
        assert_all_arrived(sent, await read_inbox(own_server.dsns.service_dsn))
        async with timed("returned", RETURNED):
            await ended(await transfer.start_back())
        assert await read_inbox(own_server.dsns.service_dsn) == []
        connection = await aiormq.connect(broker.address)
        counts = [
            (await (await connection.channel()).queue_declare(name, passive=True)).message_count
            or 0
            for name in ("fast", "slow")
        ]
        await connection.close()
        assert sum(counts) == RETURNED
        ledger = tmp_path / "ledger"
        async with running_worker(broker.address, ledger):
            await has_run(ledger, RETURNED)
        done = {one["id"]: one["at"] for one in ran(ledger)}
        assert len(ran(ledger)) == len(done) == RETURNED
        early = [
            task_id
            for task_id, at in done.items()
            if (eta := sent[task_id].eta) is None or at < eta.timestamp() - 0.01
        ]
        assert early == []
        latest = max(
            at - eta.timestamp()
            for task_id, at in done.items()
            if (eta := sent[task_id].eta) is not None
        )
        say(f"run by a Celery worker at most {latest:.1f} s after their ETA")

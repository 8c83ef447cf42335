"""An application of Celery's as teams have them: producers in this process, workers in their own,
which write down what they ran.
"""

import asyncio
import json
import os
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from celery import Celery
from kombu import Connection, Exchange, Queue, pools
from kombu.transport.native_delayed_delivery import (
    bind_queue_to_native_delayed_delivery_exchange,
    declare_native_delayed_delivery_exchanges_and_queues,
)

from tests.world.waiting import until

TASK: Final = "shop.tracking.ingest"
OTHER: Final = "shop.mail.send"
LEDGER: Final = "CELERY_TEST_LEDGER"
BROKER: Final = "CELERY_TEST_BROKER"
QUORUM: Final = "CELERY_TEST_QUORUM"
SECONDS: Final = "CELERY_TEST_SECONDS"
QUORUM_NAMES: Final = ("fast-quorum", "slow-quorum")


def make_app(
    broker: str, *, quorum: bool = False, names: Sequence[str] = ("fast", "slow"), **settings: Any
) -> Celery:
    """Make an app of classic queues with priorities; with `quorum` quorum queues, so that delays go
    through native delayed delivery.
    """
    # a pool of an earlier app would hold what it declared for declared, on a server that may
    # have been emptied since
    pools.reset()
    app = Celery("shop", broker=broker, set_as_current=False)
    kind = (
        {"x-queue-type": "quorum"}
        if quorum
        else {"x-max-priority": 10}
        if broker.startswith("amqp")
        else None
    )
    kind_of_exchange = "topic" if quorum else "direct"
    shop = Exchange(f"shop-{kind_of_exchange}", type=kind_of_exchange)
    app.conf.update(
        task_queues=[Queue(name, shop, routing_key=name, queue_arguments=kind) for name in names],
        task_default_queue=names[0],
        task_default_exchange=shop.name,
        task_default_exchange_type=kind_of_exchange,
        task_default_routing_key=names[0],
        task_default_queue_type="quorum" if quorum else "classic",
        task_ignore_result=True,
        worker_detect_quorum_queues=quorum,
        broker_connection_retry_on_startup=True,
        broker_transport_options={"visibility_timeout": 3600, "queue_order_strategy": "priority"}
        if broker.startswith("redis")
        # without confirms a task may still be on its way when its producer returns
        else {"confirm_publish": True},
        worker_prefetch_multiplier=4,
        **settings,
    )
    app.task(name=TASK)(_ingest)
    app.task(name=OTHER)(_ingest)
    return app


def declare_delays(broker: str, *names: str) -> None:
    """Declare, as a worker does when it starts, the queues of native delayed delivery, and what
    leads from them to these queues.
    """
    with Connection(broker) as connection:
        declare_native_delayed_delivery_exchanges_and_queues(connection, "quorum")
        shop = Exchange("shop-topic", type="topic")
        for name in names:
            queue = Queue(name, shop, routing_key=name, queue_arguments={"x-queue-type": "quorum"})
            queue.bind(connection.channel()).declare()
            bind_queue_to_native_delayed_delivery_exchange(connection, queue)


def _ingest(body: str, **_more: Any) -> None:
    """Write a line with the id of the task that runs, and when."""
    from celery import current_task  # noqa: PLC0415

    time.sleep(float(os.environ[SECONDS]))
    with Path(os.environ[LEDGER]).open("a", encoding="utf-8") as ledger:
        ledger.write(
            json.dumps({"id": current_task.request.id, "at": time.time(), "body": body}) + "\n"
        )


@asynccontextmanager
async def running_worker(
    broker: str,
    ledger: Path,
    *,
    queues: str = "fast,slow",
    quorum: bool = False,
    seconds: float = 0,
) -> AsyncIterator[Process]:
    """Run a worker for the time of the block, whose tasks take `seconds`; it ends as by a deploy,
    and gives back what it has not run.
    """
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "celery",
            "-A",
            "tests.world.celery_fleet:worker_app",
            "worker",
            "-P",
            "solo",
            "-Q",
            queues,
        ),
        *("--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR"),
        env=os.environ
        | {
            LEDGER: str(ledger),
            BROKER: broker,
            QUORUM: "1" if quorum else "",
            SECONDS: str(seconds),
        },
        stdout=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 30)


def ran(ledger: Path) -> list[dict[str, Any]]:
    """Return what workers wrote down."""
    return (
        [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
        if ledger.exists()
        else []
    )


async def has_run(ledger: Path, count: int) -> None:
    """Wait until workers have run this many tasks."""
    # the file is another process's
    await until(lambda: len({one["id"] for one in ran(ledger)}) >= count)


if BROKER in os.environ:
    is_quorum = bool(os.environ.get(QUORUM))
    worker_app = make_app(
        os.environ[BROKER], quorum=is_quorum, names=QUORUM_NAMES if is_quorum else ("fast", "slow")
    )

"""A worker in a process of its own, woken over a folder: `worker_process.py DSN FOLDER NAME`.

Runs until it is killed.
"""

import asyncio
import sys
from pathlib import Path

from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import make_pool
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.database.wakeups.wakeup import INBOX
from statesvc.telemetry.metrics import Telemetry
from statesvc.worker.batch_context import BatchContext
from statesvc.worker.worker_loop import Worker, WorkerLimits
from tests.world.shop import ACME, CARRIER_ID, LIMITS


async def main(dsn: str, folder: Path, name: str) -> None:
    pool = make_pool(dsn, name=name, limits=LIMITS)
    await pool.open()
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, MasterKeys([bytes(range(32))]))
    context = BatchContext(
        pool=pool, keyring=keyring, carriers={CARRIER_ID: ACME}, telemetry=Telemetry(), worker=name
    )
    listener, waker = Listener(dsn, [INBOX], folder=folder), Waker(dsn)
    await listener.start()
    await Worker(
        context, listener=listener, woken=listener.event(INBOX), waker=waker, limits=WorkerLimits()
    ).run()


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))

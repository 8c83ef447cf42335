"""A notifier as a process of its own, to be killed: `notifier_process.py DSN MASTER_KEY_HEX`."""

import asyncio
import sys
from ipaddress import ip_network

from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import PoolLimits, make_pool
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.wakeup import OUTBOX
from statesvc.delivery.targets import Targets
from statesvc.notifier.context import NotifierContext
from statesvc.notifier.notifier_loop import Notifier, NotifierLimits
from statesvc.telemetry.metrics import Telemetry


async def main(dsn: str, master_key: str) -> None:
    limits = PoolLimits(
        connections_max=2,
        acquire_seconds=2,
        statement_seconds=5,
        lock_seconds=2,
        idle_in_transaction_seconds=5,
    )
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, MasterKeys([bytes.fromhex(master_key)]))
    listener = Listener(dsn, [OUTBOX])
    await listener.start()
    async with (
        make_pool(dsn, name="notifier process", limits=limits) as pool,
        Targets(allowed=(ip_network("127.0.0.0/8"),)) as targets,
    ):
        around = NotifierContext(
            pool=pool, keyring=keyring, listener=listener, telemetry=Telemetry(), targets=targets
        )
        await Notifier(around, worker="notifier-process", limits=NotifierLimits()).run()


asyncio.run(main(*sys.argv[1:]))

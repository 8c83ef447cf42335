"""A worker that stops inside its append, with everything locked and written but nothing committed:
`frozen_worker.py DSN READY`.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys
from statesvc.append import transaction, write_entries
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import make_pool
from statesvc.queue.claim import ClaimRequest, claim
from statesvc.telemetry.metrics import Telemetry
from statesvc.worker.batch import process
from statesvc.worker.batch_context import BatchContext
from tests.world.worker_harness import ACME, CARRIER_ID, LIMITS


async def main(dsn: str, ready: Path) -> None:
    pool = make_pool(dsn, name="frozen worker", limits=LIMITS)
    await pool.open()
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, MasterKeys([bytes(range(32))]))
        asked = ClaimRequest(
            worker="frozen", limit=1, lease_seconds=60, bytes_max=1 << 20, sweep=True
        )
        messages = (await claim(connection, asked)).messages
    context = BatchContext(
        pool=pool,
        keyring=keyring,
        carriers={CARRIER_ID: ACME},
        telemetry=Telemetry(),
        worker="frozen",
    )

    async def paused(batch: Any) -> None:
        await write_entries.write_entries(batch)
        # everything that was sent has been done
        await (await batch.connection.execute("SELECT 1")).fetchone()
        await asyncio.to_thread(ready.touch)
        await asyncio.sleep(60)

    transaction.write_entries = paused  # type: ignore[attr-defined]
    await process(context, messages, lease_ends=time.monotonic() + 60)


asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

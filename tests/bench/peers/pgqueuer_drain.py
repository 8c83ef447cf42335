"""PgQueuer doing the same work: `pgqueuer_drain URL psycopg|asyncpg`.

One process, batches of 64, jobs side by side.
"""

import asyncio
import os
import sys
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, PsycopgDriver
from pgqueuer.queries import Queries
from psycopg import AsyncConnection

from tests.bench.peers.same_work import message_ids, same_work
from tests.bench.peers.until_done import until_done

_BATCH = 64
_CHUNK = 1_000


async def _driver(url: str, kind: str) -> Any:
    if kind == "psycopg":
        return PsycopgDriver(await AsyncConnection.connect(url, autocommit=True))
    return AsyncpgDriver(await asyncpg.connect(url))


async def main() -> None:
    url, kind = sys.argv[1], sys.argv[2]
    work, _ = await same_work(url)
    queries = Queries(await _driver(url, kind))
    await queries.install()
    ids = await message_ids(url)
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        await queries.enqueue(
            ["message"] * len(chunk), [message_id.bytes for message_id in chunk], [0] * len(chunk)
        )
    queue = PgQueuer(await _driver(url, kind))

    @queue.entrypoint("message")
    async def handle(job: Any) -> None:
        await work.do(UUID(bytes=job.payload))

    await until_done(
        url,
        queue.run(batch_size=_BATCH, dequeue_timeout=timedelta(seconds=0.2)),
        is_open="SELECT EXISTS (SELECT FROM pgqueuer)",
        vacuum="VACUUM ANALYZE pgqueuer",
    )
    # its own shutdown waits for timeouts that are no part of the measurement
    os._exit(0)


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(main())

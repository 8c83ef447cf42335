"""Procrastinate doing the same work: `procrastinate_drain URL`.

One process, eight jobs at a time, done jobs deleted.
"""

import asyncio
import logging
import os
import sys
from uuid import UUID

import uvloop
from procrastinate import App, PsycopgConnector

from tests.bench.peers.same_work import CONNECTIONS, message_ids, same_work
from tests.bench.peers.until_done import until_done

_CHUNK = 1_000


async def main() -> None:
    url = sys.argv[1]
    logging.disable(logging.INFO)
    work, _ = await same_work(url)
    app = App(
        connector=PsycopgConnector(conninfo=url, min_size=CONNECTIONS + 2, max_size=CONNECTIONS + 2)
    )

    @app.task(queue="messages", name="message")
    async def handle(message_id: str) -> None:
        await work.do(UUID(message_id))

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        ids = await message_ids(url)
        for start in range(0, len(ids), _CHUNK):
            await handle.batch_defer_async(
                *[{"message_id": str(message_id)} for message_id in ids[start : start + _CHUNK]]
            )
        working = app.run_worker_async(
            queues=["messages"],
            concurrency=CONNECTIONS,
            wait=False,
            listen_notify=False,
            delete_jobs="always",
            install_signal_handlers=False,
        )
        await until_done(
            url,
            working,
            is_open=(
                "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))"
            ),
            vacuum="VACUUM ANALYZE procrastinate_jobs",
        )
        # its own shutdown waits for timeouts that are no part of the measurement
        os._exit(0)


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(main())

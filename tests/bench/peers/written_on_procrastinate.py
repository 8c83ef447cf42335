"""A stack written by hand on Procrastinate: `written_on_procrastinate web|worker URL PORT HOOK`."""

import json
import logging
from typing import Any, Final

import aiohttp
from procrastinate import App, PsycopgConnector
from psycopg_pool import AsyncConnectionPool

from tests.bench.peers.written_day import TABLES, notification_of, post, run, scan_of, serve

CONCURRENCY: Final = 8


async def apply(pool: AsyncConnectionPool[Any], body: dict[str, Any]) -> str | None:
    """Apply in one transaction, and return what the subscriber is sent; None: nothing changed."""
    scan = scan_of(body)
    async with pool.connection() as connection, connection.transaction():
        taken = await connection.execute(
            "INSERT INTO processed VALUES (%s) ON CONFLICT DO NOTHING", (f"ups:{scan.event_id}",)
        )
        if taken.rowcount == 0:
            return None
        query = "SELECT status, version FROM shipment WHERE carrier = %s AND number = %s FOR UPDATE"
        row = await (await connection.execute(query, ("ups", scan.number))).fetchone()
        old, version = row or (None, 0)
        await connection.execute(
            "INSERT INTO history (carrier, number, event_id, status, at, body) VALUES (%s, %s, %s,"
            " %s, %s, %s)",
            ("ups", scan.number, scan.event_id, scan.status, scan.at, json.dumps(body)),
        )
        await connection.execute(
            "INSERT INTO shipment VALUES (%s, %s, %s, 1) ON CONFLICT (carrier, number) DO UPDATE"
            " SET status = excluded.status, version = shipment.version + 1",
            ("ups", scan.number, scan.status),
        )
        if old == scan.status:
            return None
        await connection.execute(
            "INSERT INTO transition (number, old, new) VALUES (%s, %s, %s)",
            (scan.number, old, scan.status),
        )
    return notification_of(scan, version=version + 1)


async def main(role: str, url: str, port: int, hook: str) -> None:
    logging.disable(logging.INFO)
    app = App(connector=PsycopgConnector(conninfo=url, min_size=4, max_size=CONCURRENCY))
    async with (
        app.open_async(),
        aiohttp.ClientSession() as http,
        AsyncConnectionPool(
            url, min_size=1, max_size=CONCURRENCY, open=False, kwargs={"prepare_threshold": 1}
        ) as pool,
    ):

        @app.task(name="event", retry=5)
        async def event(body: dict[str, Any]) -> None:
            if (notification := await apply(pool, body)) is not None:
                await post(http, hook, notification)

        async def store(body: bytes) -> None:
            await event.defer_async(body=json.loads(body))

        if role == "worker":
            await app.run_worker_async(
                concurrency=CONCURRENCY, delete_jobs="always", install_signal_handlers=False
            )
        else:
            async with pool.connection() as connection:
                await connection.execute(TABLES)
            await app.schema_manager.apply_schema_async()
            await serve(port, store)


if __name__ == "__main__":
    run(main)

"""The stack that a team would write by hand: aiohttp, Procrastinate, one transaction a message, a signed POST.

`written_stack web|worker URL PORT HOOK`: two processes. No audit chain, no sealing, no limiter, no retries of a notification.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import sys
from typing import Any

import aiohttp
import uvloop
from aiohttp import web
from procrastinate import App, PsycopgConnector
from psycopg_pool import AsyncConnectionPool

SCHEMA = """
CREATE TABLE processed (key text PRIMARY KEY);
CREATE TABLE history (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, carrier text, number text, event_id text, status text, at text,
    body jsonb, recorded_at timestamptz DEFAULT now());
CREATE INDEX ON history (carrier, number);
CREATE TABLE shipment (carrier text, number text, status text, version int, PRIMARY KEY (carrier, number));
CREATE TABLE transition (id bigint GENERATED ALWAYS AS IDENTITY, number text, old text, new text, at timestamptz DEFAULT now());
"""
STATUSES = {
    "M/MP": "info_received",
    "I/OR": "in_transit",
    "I/AR": "in_transit",
    "D/FS": "delivered",
}
CONCURRENCY = 8


async def apply(pool: AsyncConnectionPool[Any], body: dict[str, Any]) -> bytes | None:
    """Apply in one transaction, and return what the subscriber is sent; None: it was there already."""
    activity, number = body["activityStatus"], body["trackingNumber"]
    at, code = (
        body["localActivityDate"] + body["localActivityTime"],
        f"{activity['type']}/{activity['code']}",
    )
    status = STATUSES[code]
    event_id = hashlib.sha256(f"{number}|{at}|{code}".encode()).hexdigest()
    async with pool.connection() as connection, connection.transaction():
        taken = await connection.execute(
            "INSERT INTO processed VALUES (%s) ON CONFLICT DO NOTHING", (f"ups:{event_id}",)
        )
        if taken.rowcount == 0:
            return None
        query = "SELECT status, version FROM shipment WHERE carrier = %s AND number = %s FOR UPDATE"
        row = await (await connection.execute(query, ("ups", number))).fetchone()
        await connection.execute(
            "INSERT INTO history (carrier, number, event_id, status, at, body) VALUES (%s, %s, %s, %s, %s, %s)",
            ("ups", number, event_id, status, at, json.dumps(body)),
        )
        await connection.execute(
            "INSERT INTO shipment VALUES (%s, %s, %s, 1) ON CONFLICT (carrier, number) DO UPDATE"
            " SET status = excluded.status, version = shipment.version + 1",
            ("ups", number, status),
        )
        if row is None or row[0] != status:
            await connection.execute(
                "INSERT INTO transition (number, old, new) VALUES (%s, %s, %s)",
                (number, row and row[0], status),
            )
    data = {"tracking_number": number, "to": status, "sequence": (row[1] if row else 0) + 1}
    return json.dumps({"type": "shipment.status_changed", "data": data}).encode()


async def main() -> None:
    role, url, port, hook = sys.argv[1:]
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
            sent = await apply(pool, body)
            if sent is not None:
                signature = hmac.digest(b"k", sent, "sha256").hex()
                async with http.post(
                    hook,
                    data=sent,
                    headers={"content-type": "application/json", "signature": signature},
                ) as answer:
                    await answer.read()

        async def take(request: web.Request) -> web.Response:
            body = await request.read()
            assert hmac.compare_digest(request.headers["credential"], "c")
            await event.defer_async(body=json.loads(body))
            return web.json_response({})

        if role == "worker":
            await app.run_worker_async(
                concurrency=CONCURRENCY, delete_jobs="always", install_signal_handlers=False
            )
        else:
            async with pool.connection() as connection:
                await connection.execute(SCHEMA)
            await app.schema_manager.apply_schema_async()
            served = web.Application()
            served.router.add_post("/", take)
            runner = web.AppRunner(served, access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", int(port)).start()
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(main())

"""A plainer stack written by hand, on asyncpg: `written_on_asyncpg web|worker URL PORT HOOK`.

An inbox table with SKIP LOCKED, LISTEN, one transaction a message, an outbox row until its POST is
over. No queue retries a message.
"""

import asyncio
import json
from typing import Any, Final

import aiohttp
import asyncpg

from tests.bench.peers.written_day import TABLES, notification_of, post, run, scan_of, serve

SCHEMA: Final = f"""{TABLES}
CREATE TABLE inbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text);
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text);
"""
LOOPS: Final = 3
CONNECTIONS: Final = 8


class Worker:
    """Takes one message after the other in each of its loops."""

    def __init__(self, pool: Any, http: aiohttp.ClientSession, hook: str) -> None:
        self._pool = pool
        self._http = http
        self._hook = hook

    async def loop(self, woken: asyncio.Event) -> None:
        while True:
            woken.clear()
            while await self._one():
                pass
            await woken.wait()

    async def _one(self) -> bool:
        """Work off one message; return whether there was one."""
        async with self._pool.acquire() as connection:
            queued = None
            async with connection.transaction():
                message = await connection.fetchval(
                    "DELETE FROM inbox WHERE id = (SELECT id FROM inbox ORDER BY id FOR UPDATE SKIP"
                    " LOCKED LIMIT 1) RETURNING body"
                )
                if message is None:
                    return False
                if (notification := await apply(connection, json.loads(message))) is not None:
                    queued = await connection.fetchval(
                        "INSERT INTO outbox (body) VALUES ($1) RETURNING id", notification
                    )
            if notification is not None:
                await post(self._http, self._hook, notification)
                await connection.execute("DELETE FROM outbox WHERE id = $1", queued)
        return True


async def apply(connection: Any, body: dict[str, Any]) -> str | None:
    """Apply in the caller's transaction, and return what the subscriber is sent;
    None: nothing changed.
    """
    scan = scan_of(body)
    taken = await connection.execute(
        "INSERT INTO processed VALUES ($1) ON CONFLICT DO NOTHING", f"ups:{scan.event_id}"
    )
    if taken.endswith(" 0"):
        return None
    row = await connection.fetchrow(
        "SELECT status, version FROM shipment WHERE carrier = $1 AND number = $2 FOR UPDATE",
        "ups",
        scan.number,
    )
    old, version = row or (None, 0)
    await connection.execute(
        "INSERT INTO history (carrier, number, event_id, status, at, body) VALUES ($1, $2, $3, $4,"
        " $5, $6)",
        *("ups", scan.number, scan.event_id, scan.status, scan.at, json.dumps(body)),
    )
    await connection.execute(
        "INSERT INTO shipment VALUES ($1, $2, $3, 1) ON CONFLICT (carrier, number) DO UPDATE"
        " SET status = excluded.status, version = shipment.version + 1",
        *("ups", scan.number, scan.status),
    )
    if old == scan.status:
        return None
    await connection.execute(
        "INSERT INTO transition (number, old, new) VALUES ($1, $2, $3)",
        *(scan.number, old, scan.status),
    )
    return notification_of(scan, version=version + 1)


async def main(role: str, url: str, port: int, hook: str) -> None:
    async with (
        asyncpg.create_pool(url, min_size=2, max_size=CONNECTIONS) as pool,
        aiohttp.ClientSession() as http,
    ):
        if role == "web":
            await pool.execute(SCHEMA)

            async def store(body: bytes) -> None:
                json.loads(body)
                await pool.execute(
                    "WITH stored AS (INSERT INTO inbox (body) VALUES ($1) RETURNING 1) SELECT"
                    " pg_notify('inbox', '') FROM stored",
                    body.decode(),
                )

            await serve(port, store)
        worker, woken = Worker(pool, http, hook), [asyncio.Event() for _ in range(LOOPS)]
        listener = await asyncpg.connect(url)

        def wake(*_: object) -> None:
            for each in woken:
                each.set()

        await listener.add_listener("inbox", wake)
        await asyncio.gather(*(worker.loop(each) for each in woken))


if __name__ == "__main__":
    run(main)

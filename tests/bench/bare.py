"""Baselines of our webhook, a process of its own: `bare limit` or `bare peer URL`.

Prints its port as JSON, ends with stdin.

limit: our own handler, sealing included, with a store that answers at once: the most that aiohttp
and our code allow. peer: a plain handler with one INSERT a request through a pool of eight, the
usual way; it seals, dedupes and queues nothing.
"""

import asyncio
import json
import secrets
import sys
from uuid import uuid4

import uvloop
from aiohttp import web

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealingKey
from statesvc.bodies.sealed_message import SealedMessage
from statesvc.database.pool import Pool
from statesvc.health.ingest_report import LastMinute
from statesvc.http.app import Server, build_app
from statesvc.http.keys.api_keys import Keys
from statesvc.ingress.ack_counts import AckCounts
from statesvc.ingress.body_memory import MemoryBound, ReservedMemory
from statesvc.ingress.carrier_authenticator import Authenticators
from statesvc.ingress.group_commit import GroupCommit, Outcome, Stored
from statesvc.ingress.webhooks import DiskRoom, Webhooks
from statesvc.settings.service_settings import load_settings
from statesvc.telemetry.metrics import Telemetry

POOL = 8
TABLE = (
    "CREATE TABLE IF NOT EXISTS pushed (id uuid PRIMARY KEY, carrier text NOT NULL, received_at"
    " timestamptz DEFAULT now(), body bytea)"
)
INSERT = "INSERT INTO pushed (id, carrier, body) VALUES (%s, %s, %s)"


class Nowhere(GroupCommit):
    """Stores nothing, at once."""

    async def put(self, message: SealedMessage, held: ReservedMemory | None = None) -> Outcome:
        if held is not None:
            held.release()
        return Stored(message.message_id, duplicate=False)


def limit(pool: Pool) -> web.Application:
    """Build our application without a database."""
    settings = load_settings()
    memory = MemoryBound(settings.ingress.memory_bytes_max)
    keys = Keys(pool)
    webhooks = Webhooks(
        authenticators=Authenticators(CARRIERS, settings),
        keys=keys,
        keyring=Keyring(
            master=MasterKeys([secrets.token_bytes(32)]),
            digest_key=secrets.token_bytes(32),
            inbox=SealingKey.fresh(),
        ),
        group_commit=Nowhere(pool, memory=memory),
        memory=memory,
        disk=DiskRoom(None, free_bytes_min=0),
        ack_counts=AckCounts(pool, process="bench"),
        minute=LastMinute(),
        telemetry=Telemetry(),
    )
    return build_app(webhooks.routes, keys=keys)


def peer(pool: Pool) -> web.Application:
    """Build a handler with one INSERT a request."""

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        message_id = uuid4()
        async with pool.connection() as connection:
            await connection.execute(INSERT, (message_id, request.match_info["carrier_id"], body))
        return web.json_response({"message_id": str(message_id)})

    application = web.Application()
    application.router.add_post("/v1/webhooks/{carrier_id}", take)
    return application


async def main() -> None:
    kind, url = sys.argv[1], sys.argv[2]
    pool = Pool(url, min_size=POOL, max_size=POOL, kwargs={"autocommit": True})
    if kind == "peer":
        await pool.open(wait=True)
        async with pool.connection() as connection:
            await connection.execute(TABLE)
    server = Server(
        (limit if kind == "limit" else peer)(pool), host="127.0.0.1", port=0, grace_seconds=1
    )
    sys.stdout.write(json.dumps({"port": await server.start()}) + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()
    if kind == "peer":
        await pool.close()


if __name__ == "__main__":
    uvloop.run(main())

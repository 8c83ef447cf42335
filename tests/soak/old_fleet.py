"""A worker of an old fleet, in Python: `python -m tests.soak.old_fleet`.

It knows the database, the inbox key, its name and its carriers.

It reads as our own normalizers do, but for what is planted (`PLANTED`): another status of some
codes, no events of others.
"""

import asyncio
import base64
import json
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from events.carriers import CARRIERS
from events.crypto.keyring import body_context
from events.crypto.sealing import SealingKey, unsalted
from events.normalized import dump

INBOX = SealingKey(base64.b64decode(os.environ["STATESVC_INBOX_KEY"]))
NORMALIZER = os.environ["NORMALIZER"]
SERVED = os.environ["CARRIERS"].split(",")
LEASE = f"{os.environ.get('LEASE_SECONDS', '30')} s"
PLANTED = json.loads(os.environ.get("PLANTED", "{}"))
WORKER = f"old-{os.getpid()}"
_CLAIM = """SELECT message_id, carrier_id, token, received_at, sealed_key, sealed FROM statesvc.claim(
    p_worker => %s, p_limit => 64, p_lease => %s::interval, p_stage => %s, p_sweep => %s, p_normalizer => %s, p_carriers => %s)"""


def planted(document: bytes) -> bytes:
    """Plant another status for some codes, and drop the events of others."""
    said = json.loads(document)
    kept = [
        reading
        for reading in said["readings"]
        if reading["raw"].get("code") not in PLANTED.get("omit", [])
    ]
    for reading in kept:
        reading["status"] = PLANTED.get("status", {}).get(
            reading["raw"].get("code"), reading.get("status")
        )
    return json.dumps({**said, "readings": kept}).encode()


def hand_over(message: Any) -> dict[str, str]:
    context = body_context(message.message_id)
    key = INBOX.unwrap(message.sealed_key, context)
    carrier = CARRIERS[message.carrier_id]
    document = planted(
        dump(carrier.read(unsalted(key.open(message.sealed, context)), message.received_at))
    )
    events = base64.b64encode(key.seal(document, context)).decode()
    return {"message_id": str(message.message_id), "normalizer": NORMALIZER, "events": events}


async def work(
    connection: psycopg.AsyncConnection[Any], woken: asyncio.Event, stopping: asyncio.Event
) -> None:
    swept_at = float("-inf")
    while not stopping.is_set():
        woken.clear()
        sweep = time.monotonic() - swept_at >= 1
        messages = await _claim(connection, "raw", sweep=sweep)
        swept_at = time.monotonic() if sweep else swept_at
        messages = messages or await _claim(connection, "trial")
        if messages:
            await connection.execute(
                "SELECT statesvc.settle(%s, %s)",
                (messages[0].token, json.dumps(list(map(hand_over, messages)))),
            )
            await connection.execute("SELECT pg_notify('statesvc_inbox', '')")
        else:
            with suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), 1)


async def _claim(
    connection: psycopg.AsyncConnection[Any], stage: str, *, sweep: bool = False
) -> list[Any]:
    return await (
        await connection.execute(_CLAIM, (WORKER, LEASE, stage, sweep, NORMALIZER, SERVED))
    ).fetchall()


async def listen(connection: psycopg.AsyncConnection[Any], woken: asyncio.Event) -> None:
    async for _ in connection.notifies():
        woken.set()


async def main() -> None:
    woken, stopping = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        stopping.set()
        woken.set()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    async with (
        await psycopg.AsyncConnection.connect(
            autocommit=True, row_factory=namedtuple_row
        ) as connection,
        await psycopg.AsyncConnection.connect(
            autocommit=True, row_factory=namedtuple_row
        ) as listener,
    ):
        await listener.execute("LISTEN statesvc_inbox")
        await listener.execute("LISTEN statesvc_trial")
        sys.stdout.write(f"{WORKER} works\n")
        sys.stdout.flush()
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(listen(listener, woken))
            await work(connection, woken, stopping)
            listening.cancel()


if __name__ == "__main__":
    asyncio.run(main())

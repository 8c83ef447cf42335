"""A worker in Python on the claim protocol (docs/claim-protocol.md): reads plain scans of our
format, declines the rest.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import re
import signal
import time
from datetime import UTC, datetime
from typing import Any

import psycopg
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from psycopg.rows import namedtuple_row

INBOX_KEY = base64.b64decode(os.environ["STATESVC_INBOX_KEY"])
NORMALIZER = "canonical@python-1"
WORKER = f"python-{os.getpid()}"
CLAIM = """SELECT message_id, token, sealed_key, commitment, sealed FROM statesvc.claim(
    p_worker => %s, p_limit => 64, p_lease => '30 s', p_stage => %s, p_sweep => %s, p_normalizer => %s, p_carriers => ARRAY['canonical'])"""
NEXT_DUE = "SELECT extract(epoch FROM statesvc.next_due() - statesvc.clock())::float8"
TIMEOUTS = (
    "-c statement_timeout=15s -c lock_timeout=15s -c idle_in_transaction_session_timeout=15s -c"
    " idle_session_timeout=0"
)

STATUSES = {"info_received", "picked_up", "in_transit", "out_for_delivery", "delivered"}
PLAIN = re.compile(r"[A-Za-z0-9]{4,40}", re.ASCII)
TIME = re.compile(
    r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?[+-](?:0\d|1[0-4]):[0-5]\d", re.ASCII
)


def key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"statesvc key id\x1f" + key).digest()[:8]


def seal(key: bytes, plaintext: bytes, context: bytes) -> bytes:
    nonce = os.urandom(12)
    return b"\x01" + key_id(key) + nonce + AESGCM(key).encrypt(nonce, plaintext, context)


def unseal(key: bytes, sealed: bytes, context: bytes) -> bytes:
    if sealed[:9] != b"\x01" + key_id(key):
        raise ValueError("of another format, or sealed under another key")
    return AESGCM(key).decrypt(sealed[9:21], sealed[21:], context)


def read(body: bytes) -> bytes:
    """Return the hand-over document; raise ValueError unless the Python normalizer
    surely reads the same.
    """
    text = body.decode("ascii")
    event = json.loads(text)
    # an exact round trip excludes repeated keys and other spellings of a number
    if json.dumps(event, separators=(",", ":")) != text or not isinstance(event, dict):
        raise ValueError("printed otherwise")
    if (
        event.keys() != {"event_id", "tracking_number", "occurred_at", "status"}
        or event["status"] not in STATUSES
    ):
        raise ValueError("no plain scan")
    occurred_at = event["occurred_at"]
    if not (
        PLAIN.fullmatch(event["event_id"])
        and PLAIN.fullmatch(event["tracking_number"])
        and TIME.fullmatch(occurred_at)
    ):
        raise ValueError("values that are not plain")
    instant = datetime.fromisoformat(occurred_at)
    fraction = f".{instant.microsecond:06}" if instant.microsecond else ""  # six digits or none
    reading = {
        "tracking_number": event["tracking_number"],
        "native_id": event["event_id"],
        "kind": "scan",
        "status": event["status"],
        "raw": {"further": ["scan", event["status"], "", "", instant.astimezone(UTC).isoformat()]},
        "time": {
            "printed": occurred_at,
            "instant": occurred_at,
            "tz_source": "explicit",
            "precision": "second",
            "identity": f"{instant:%Y%m%dT%H%M%S}{fraction}",
        },
    }
    return json.dumps({"format": 1, "readings": [reading]}).encode()


def hand_over(message: Any) -> dict[str, str] | None:  # noqa: ANN401 - a named tuple of the row
    """Return the message's result for `settle`, or None to decline it."""
    context = message.message_id.bytes
    try:
        body_key = unseal(INBOX_KEY, message.sealed_key, context)
        salted = unseal(body_key, message.sealed, context)
        if hashlib.sha256(salted).digest() != message.commitment:
            return None
        events = seal(body_key, read(salted[32:]), context)
    except (InvalidTag, TypeError, ValueError, RecursionError):
        return None
    return {
        "message_id": str(message.message_id),
        "normalizer": NORMALIZER,
        "events": base64.b64encode(events).decode(),
    }


async def settle(connection: psycopg.AsyncConnection[Any], messages: list[Any]) -> None:
    results = {message.message_id: hand_over(message) for message in messages}
    read_here = [result for result in results.values() if result is not None]
    declined = [message_id for message_id, result in results.items() if result is None]
    if read_here:
        await connection.execute(
            "SELECT statesvc.settle(%s, %s)", (messages[0].token, json.dumps(read_here))
        )
    if declined:
        await connection.execute("SELECT statesvc.decline(%s, %s)", (messages[0].token, declined))
    await connection.execute("SELECT pg_notify('statesvc_inbox', '')")


async def work(
    connection: psycopg.AsyncConnection[Any], woken: asyncio.Event, stopping: asyncio.Event
) -> None:
    swept_at = float("-inf")
    while not stopping.is_set():
        woken.clear()
        sweep = time.monotonic() - swept_at >= 30
        messages = await (
            await connection.execute(CLAIM, (WORKER, "raw", sweep, NORMALIZER))
        ).fetchall()
        if sweep:
            swept_at = time.monotonic()
        if not messages:  # trials: read without effect
            messages = await (
                await connection.execute(CLAIM, (WORKER, "trial", False, NORMALIZER))
            ).fetchall()
        if messages and stopping.is_set():
            await connection.execute("SELECT statesvc.release(%s)", (messages[0].token,))
        elif messages:
            await settle(connection, messages)
        elif not stopping.is_set():
            ((seconds,),) = await (await connection.execute(NEXT_DUE)).fetchall()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(
                    woken.wait(), 30 if seconds is None else min(30, max(0.001, seconds))
                )


async def listen(connection: psycopg.AsyncConnection[Any], woken: asyncio.Event) -> None:
    async for _ in connection.notifies():
        woken.set()


async def main() -> None:
    woken, stopping = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        stopping.set()
        woken.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    connecting: dict[str, Any] = {
        "autocommit": True,
        "application_name": WORKER,
        "options": TIMEOUTS,
        "row_factory": namedtuple_row,
    }
    async with (
        await psycopg.AsyncConnection.connect(**connecting) as connection,
        await psycopg.AsyncConnection.connect(**connecting) as listener,
    ):
        await listener.execute("LISTEN statesvc_inbox; LISTEN statesvc_trial")
        print(WORKER, "works", flush=True)
        async with asyncio.TaskGroup() as tasks:  # a failure of either task ends the program
            listening = tasks.create_task(listen(listener, woken))
            await work(connection, woken, stopping)
            listening.cancel()


asyncio.run(main())

"""The stacks that a team would write by hand: their tables, what they read of an alert, what they
send, and their two processes.

They have no audit chain, no sealing, no limiter and no retries of a notification. As ours, they
notify of changes of status alone.
"""

import asyncio
import hashlib
import hmac
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import aiohttp
import uvloop
from aiohttp import web

TABLES: Final = """
CREATE TABLE processed (key text PRIMARY KEY);
CREATE TABLE history (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, carrier text, number text, event_id text, status text, at text,
    body jsonb, recorded_at timestamptz DEFAULT now());
CREATE INDEX ON history (carrier, number);
CREATE TABLE shipment (carrier text, number text, status text, version int, PRIMARY KEY (carrier, number));
CREATE TABLE transition (id bigint GENERATED ALWAYS AS IDENTITY, number text, old text, new text, at timestamptz DEFAULT now());
"""
_STATUSES: Final = {
    "M/MP": "info_received",
    "I/OR": "in_transit",
    "I/AR": "in_transit",
    "D/FS": "delivered",
}


class Scan(NamedTuple):
    number: str
    at: str
    status: str
    event_id: str


def scan_of(body: dict[str, Any]) -> Scan:
    """Read an alert."""
    activity, number = body["activityStatus"], body["trackingNumber"]
    at = body["localActivityDate"] + body["localActivityTime"]
    code = f"{activity['type']}/{activity['code']}"
    event_id = hashlib.sha256(f"{number}|{at}|{code}".encode()).hexdigest()
    return Scan(number, at, _STATUSES[code], event_id)


def notification_of(scan: Scan, *, version: int) -> str:
    """Return what the subscriber is sent."""
    data = {"tracking_number": scan.number, "to": scan.status, "sequence": version}
    return json.dumps({"type": "shipment.status_changed", "data": data})


async def post(http: aiohttp.ClientSession, hook: str, notification: str) -> None:
    """Send it, signed."""
    body = notification.encode()
    signature = hmac.digest(b"k", body, "sha256").hex()
    headers = {"content-type": "application/json", "signature": signature}
    async with http.post(hook, data=body, headers=headers) as answer:
        await answer.read()


async def serve(port: int, store: Callable[[bytes], Awaitable[None]]) -> None:
    """Acknowledge what was stored, until this process is killed."""

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        assert hmac.compare_digest(request.headers["credential"], "c")
        await store(body)
        return web.json_response({})

    served = web.Application()
    served.router.add_post("/", take)
    runner = web.AppRunner(served, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


def run(main: Callable[[str, str, int, str], Awaitable[None]]) -> None:
    """Run `main` on the arguments `web|worker URL PORT HOOK`."""
    role, url, port, hook = sys.argv[1:]

    async def started() -> None:
        await main(role, url, int(port), hook)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(started())

"""A sample subscriber: registers, verifies signatures, prints a line per notification.

Signatures follow Standard Webhooks 1.0.0. The verification is written out here, as a subscriber
would write it, and shares no code with the service.
"""

import base64
import hmac
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiohttp
import orjson
from aiohttp import web

from statesvc.addons.demo.demo_counts import DemoCounts

PATH: Final = "/statesvc-demo-subscriber"
LINE_SECONDS: Final = 0.25
TOLERANCE_SECONDS: Final = 300


def is_genuine(secret: str, headers: Mapping[str, str], body: bytes, *, now: float) -> bool:
    """Return whether any of the signatures was made with `secret` (`whsec_...`), and recently."""
    webhook_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(
        hmac.digest(key, f"{webhook_id}.{timestamp}.".encode() + body, "sha256")
    ).decode()
    return any(
        hmac.compare_digest(f"v1,{expected}", given)
        for given in headers.get("webhook-signature", "").split(" ")
    )


class DemoSubscriber:
    """Listens on a free port of the loopback; `show_line` gets a line four times a second at most."""

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        api: str,
        key: str,
        counts: DemoCounts,
        show_line: Callable[[str], None],
    ) -> None:
        self._session = session
        self._api = api
        self._headers = {"Authorization": f"Bearer {key}"}
        self._counts = counts
        self._show_line = show_line
        self._secret = ""
        self._subscription_id: str | None = None
        self._next_line_at = 0.0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Open the port and subscribe to everything.

        Remove subscriptions of an earlier demo first.
        """
        application = web.Application()
        application.router.add_post(PATH, self._receive)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        await self._forget_earlier()
        wish = {"url": f"http://127.0.0.1:{port}{PATH}", "name": "shop"}
        async with self._session.post(
            f"{self._api}/v1/subscriptions", json=wish, headers=self._headers
        ) as answer:
            answer.raise_for_status()
            subscription = orjson.loads(await answer.read())
        self._secret, self._subscription_id = subscription["secret"], subscription["id"]

    async def stop(self) -> None:
        """Unsubscribe as far as the service still answers, and close the port."""
        try:
            if self._subscription_id is not None:
                await self._delete(self._subscription_id)
        except (aiohttp.ClientError, TimeoutError):
            self._show_line(
                "the service is gone already: the next demo removes this one's subscriptions"
            )
        if self._runner is not None:
            await self._runner.cleanup()

    async def _forget_earlier(self) -> None:
        async with self._session.get(
            f"{self._api}/v1/subscriptions", headers=self._headers
        ) as answer:
            answer.raise_for_status()
            listed = orjson.loads(await answer.read())
        for subscription in listed["items"]:
            if subscription["url"].startswith("http://127.0.0.1:") and PATH in subscription["url"]:
                await self._delete(subscription["id"])

    async def _delete(self, subscription_id: str) -> None:
        async with self._session.delete(
            f"{self._api}/v1/subscriptions/{subscription_id}", headers=self._headers
        ) as answer:
            await answer.read()

    async def _receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        if not is_genuine(self._secret, request.headers, body, now=time.time()):
            self._counts.forged += 1
            return web.Response(status=401)
        self._counts.verified += 1
        if time.monotonic() >= self._next_line_at:
            self._next_line_at = time.monotonic() + LINE_SECONDS
            self._show_line(_line(orjson.loads(body)))
        return web.Response(status=204)


def _line(notification: dict[str, Any]) -> str:
    data = notification.get("data", {})
    number = str(data.get("tracking_number", ""))
    change = (
        f"{data.get('from')} -> {data.get('to')}"
        if notification.get("type") == "shipment.status_changed"
        else "updated"
    )
    return f"{data.get('carrier_id', ''):<12} {number[:6]}…{number[-4:]:<6} {change}"

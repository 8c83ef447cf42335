"""A real subscriber on the loopback: verifies what it gets, and writes down the
order in which it came.
"""

import time
from typing import Any

import orjson
from aiohttp import web

from statesvc.addons.demo.subscriber import is_genuine


class Subscriber:
    """Listens from `start` to `stop`. `secret` is set once the subscription is made."""

    def __init__(self) -> None:
        self.secret = ""
        self.forged = 0
        self.received: list[str] = []
        """webhook-ids as they came, repeats included."""
        self.arrived: dict[str, float] = {}
        """When each webhook-id first came, as a Unix time."""
        self.said: dict[str, dict[str, Any]] = {}
        """Bodies of the notifications."""
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> None:
        application = web.Application()
        application.router.add_post("/", self._take)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        if not is_genuine(self.secret, request.headers, body, now=time.time()):
            self.forged += 1
            return web.Response(status=401)
        webhook_id = request.headers["webhook-id"]
        self.received.append(webhook_id)
        self.arrived.setdefault(webhook_id, time.time())
        told = orjson.loads(body)
        known = self.said.setdefault(webhook_id, told)
        # the same id must never tell two things
        self.forged += known != told
        return web.Response(status=204)

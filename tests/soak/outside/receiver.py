"""The ledger's own subscriber: verifies Standard Webhooks by itself, refuses some
deliveries, writes down each.
"""

import base64
import hashlib
import hmac
import random
import time

from aiohttp import web

from tests.soak.outside.record import Record

REFUSED_SHARE = 0.05
_TOLERANCE_SECONDS = 300


class Receiver:
    """Listens from `start` to `stop`."""

    def __init__(self, record: Record, rng: random.Random) -> None:
        self.secret = ""
        self.forged = 0
        self._refused: set[str] = set()
        self.url = ""
        self._record = record
        self._rng = rng
        self._runner: web.AppRunner | None = None

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

    def _is_signed(self, name: str, timestamp: str, signatures: str, body: bytes) -> bool:
        key = base64.b64decode(self.secret.removeprefix("whsec_"))
        right = base64.b64encode(
            hmac.new(key, f"{name}.{timestamp}.".encode() + body, hashlib.sha256).digest()
        ).decode()
        return (
            f"v1,{right}" in signatures.split()
            and abs(time.time() - int(timestamp)) < _TOLERANCE_SECONDS
        )

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        name = request.headers["webhook-id"]
        if not self._is_signed(
            name, request.headers["webhook-timestamp"], request.headers["webhook-signature"], body
        ):
            self.forged += 1
            return web.Response(status=401)
        # once at most: a second refusal would put the third try off by minutes
        accepted = name in self._refused or self._rng.random() >= REFUSED_SHARE
        if not accepted:
            self._refused.add(name)
        self._record.receive(name, body, accepted=accepted)
        return web.Response(status=204 if accepted else 500)

"""Receivers that check the signature of Shopify, GitHub or Stripe take what the running service
sends, and the same again under its id.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from statesvc.delivery.signing import OlderSignature
from tests.acceptance.processes import Service
from tests.statesvc.delivery.test_older_signature import CHECKS

JSON = {"Content-Type": "application/json"}
EVENT = {
    "carrier_id": "ups",
    "tracking_number": "1ZOLD00000000001",
    "occurred_at": "2026-05-01T10:00:00+02:00",
    "status": "picked_up",
}

pytestmark = pytest.mark.usefixtures("own_processes")


class OldReceiver:
    """Checks requests as its sender's documents say, with the secret that it was set to, and knows
    nothing of Standard Webhooks.
    """

    def __init__(
        self, older: OlderSignature, check: Callable[[str, dict[str, str], bytes], bool]
    ) -> None:
        self.wish = {
            "algorithm": "hmac-sha256",
            "header": older.header,
            "encoding": older.encoding,
            "prefix": older.prefix,
        }
        self.secret = ""
        self.taken: list[tuple[str, bytes]] = []
        self.refused = 0
        self._check = check

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        if not self._check(self.secret, headers, body):
            self.refused += 1
            return web.Response(status=401)
        self.taken.append((headers["webhook-id"], body))
        return web.Response(status=204)


async def call(service: Service, path: str, body: Any = None) -> Any:
    status, answer = await service.post(path, json.dumps(body or {}), **JSON)
    assert status in {200, 201}, answer
    return answer


async def taken(receivers: list[OldReceiver], count: int) -> None:
    async with asyncio.timeout(60):
        # other processes decide
        while any(len(each.taken) < count for each in receivers):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_old_receivers_take_ours_unchanged_also_sent_again_and_while_a_secret_is_rotated(
    service_maker: Callable[..., Awaitable[Service]], tmp_path: Path
) -> None:
    receivers, paths = [OldReceiver(*each) for each in CHECKS], []
    app = web.Application()
    for number, each in enumerate(receivers):
        app.router.add_post(f"/{number}", each.take)
    async with TestServer(app) as server, await service_maker(tmp_path, {}) as service:
        await service.start("api", "worker", "notifier")
        for number, each in enumerate(receivers):
            made = await call(
                service,
                "/v1/subscriptions",
                {"url": str(server.make_url(f"/{number}")), "signature": each.wish},
            )
            each.secret = made["secret"]
            paths.append(f"/v1/subscriptions/{made['id']}")
        await call(service, "/v1/events", EVENT | {"event_id": "S-1"})
        await taken(receivers, 1)
        for path, each in zip(paths, receivers, strict=True):
            ((webhook_id, _),) = each.taken
            assert (await call(service, f"{path}/notifications/{webhook_id}/resend"))[
                "webhook_id"
            ] == webhook_id
        await taken(receivers, 2)
        for path in paths:
            await call(service, f"{path}/rotate-secret?grace_hours=24")
        await call(
            service,
            "/v1/events",
            EVENT
            | {
                "event_id": "S-2",
                "status": "delivered",
                "occurred_at": "2026-05-02T10:00:00+02:00",
            },
        )
        await taken(receivers, 3)
    for each in receivers:
        bodies = defaultdict(list)
        for webhook_id, body in each.taken:
            bodies[webhook_id].append(body)
        first, second = bodies.values()
        assert (len(first), len(set(first)), len(second)) == (2, 1, 1), (
            "sent again: the same id and body"
        )
        assert each.refused == 0

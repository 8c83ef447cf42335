"""The operator's webhook takes each notice once, signed; what it does not take is tried
again and stays listed.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from freezegun import freeze_time
from psycopg import AsyncConnection
from standardwebhooks.webhooks import Webhook

from statesvc.delivery.addresses import EVERY_NETWORK
from statesvc.delivery.http_sender import HttpSender
from statesvc.delivery.retry_schedule import ATTEMPTS_MAX
from statesvc.health.notices import Notice, NoticeKind, list_notices, write_notices
from statesvc.notifier.operator_webhook import OperatorWebhook
from statesvc.subscriptions.subscription_secrets import Secret

SECRET = Secret.fresh()


class Operator:
    def __init__(self) -> None:
        self.status = 204
        self.got: list[dict[str, Any]] = []
        self.url = ""

    async def hook(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        with freeze_time(datetime.fromtimestamp(int(request.headers["webhook-timestamp"]), UTC)):
            self.got.append(
                {
                    "id": request.headers["webhook-id"],
                    **Webhook(SECRET.shown).verify(body, dict(request.headers)),
                }
            )
        return web.Response(status=self.status)


class OnePool:
    """The test's connection as a pool."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection, self._lock = connection, asyncio.Lock()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        async with self._lock:
            yield self._connection


@pytest.fixture
async def operator() -> AsyncIterator[Operator]:
    operator = Operator()
    app = web.Application()
    app.router.add_post("/hook", operator.hook)
    async with TestServer(app, host="127.0.0.1") as server:
        operator.url = f"http://127.0.0.1:{server.port}/hook"
        yield operator


@pytest.fixture
async def webhook(operator: Operator) -> AsyncIterator[OperatorWebhook]:
    async with HttpSender(allowed=EVERY_NETWORK) as sender:
        yield OperatorWebhook(sender=sender, url=operator.url, keys=[SECRET.key])


async def write(connection: AsyncConnection[Any], target: str = "subscription x") -> None:
    notice = Notice(kind=NoticeKind.DISABLED, target=target, details={"why": "it is gone"})
    await write_notices(connection, [notice], now=datetime.now(UTC))


async def test_a_notice_is_posted_once_signed_by_the_database_clock(
    connection: AsyncConnection[Any], operator: Operator, webhook: OperatorWebhook
) -> None:
    await write(connection)
    pool = OnePool(connection)
    assert await webhook.notify(pool) == 1
    assert await webhook.notify(pool) == 0
    (got,) = operator.got
    assert got["type"] == "subscription.disabled"
    assert got["data"] == {"notice_id": 1, "target": "subscription x", "why": "it is gone"}
    ((stored,), _) = await list_notices(connection, unseen_only=True, limit=10)
    assert stored.notified_at is not None


async def test_what_is_refused_is_tried_again_on_the_schedule_under_one_id_and_at_last_left(
    database: Any, connection: AsyncConnection[Any], operator: Operator, webhook: OperatorWebhook
) -> None:
    await write(connection)
    pool = OnePool(connection)
    operator.status = 500
    for _ in range(ATTEMPTS_MAX):
        await webhook.notify(pool)
        assert await webhook.notify(pool) == 0
        await database.clock.advance(30 * 3600)
        await connection.execute("UPDATE statesvc.notice SET created_at = statesvc.clock()")
    assert len(operator.got) == ATTEMPTS_MAX
    assert {got["id"] for got in operator.got} == {"o1-1"}
    await webhook.notify(pool)
    assert len(operator.got) == ATTEMPTS_MAX
    ((stored,), _) = await list_notices(connection, unseen_only=False, limit=10)
    assert stored.notified_at is None


async def test_old_notices_are_not_sent_when_a_url_is_set_late(
    database: Any, connection: AsyncConnection[Any], operator: Operator, webhook: OperatorWebhook
) -> None:
    await write(connection)
    await database.clock.advance(8 * 24 * 3600)
    assert await webhook.notify(OnePool(connection)) == 0
    assert operator.got == []

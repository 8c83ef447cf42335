"""Subscriptions of brokers over HTTP: their login goes in and never comes out."""

import base64
import os
from collections.abc import AsyncIterator
from ipaddress import ip_network
from typing import Any
from uuid import UUID

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealError
from statesvc.api.personal_reads import PersonalReads
from statesvc.api.served_context import served_context
from statesvc.api.subscriptions.routes import routes
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import PoolLimits, make_pool
from statesvc.delivery.outgoing import Login
from statesvc.delivery.targets import Targets
from statesvc.http.app import build_app
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.key_store import Scope, create_key
from statesvc.subscriptions.subscription_secrets import open_login

LOOPBACK = (ip_network("127.0.0.0/8"),)
LIMITS = PoolLimits(
    connections_max=2,
    acquire_seconds=2,
    statement_seconds=5,
    lock_seconds=2,
    idle_in_transaction_seconds=5,
)
SHOWN = "nats+tls://broker.invalid/shipments"
URL = "nats+tls://user:hunter2@broker.invalid/shipments"


class Wakes:
    def wake(self, channel: str) -> None:
        """Wake nobody."""


class Api:
    """The calls, and what is stored."""

    def __init__(
        self,
        client: TestClient[Any, Any],
        key: str,
        connection: AsyncConnection[Any],
        keyring: Keyring,
    ) -> None:
        self.client, self.key, self.connection, self.keyring = client, key, connection, keyring

    async def __call__(
        self, method: str, path: str = "", body: Any = None
    ) -> tuple[int, Any, bytes]:
        headers = {"Authorization": f"Bearer {self.key}"}
        response = await self.client.request(
            method, f"/v1/subscriptions{path}", json=body, headers=headers
        )
        text = await response.read()
        return response.status, orjson.loads(text) if text else None, text

    async def make(self, url: str = URL) -> Any:
        status, made, _ = await self("POST", body={"url": url})
        assert status == 201, made
        return made

    async def login(self, subscription_id: str) -> Login | None:
        query = "SELECT sealed_login FROM statesvc.subscription WHERE subscription_id = %s"
        row = await (
            await self.connection.execute(query, (subscription_id,), binary=True)
        ).fetchone()
        assert row is not None
        return open_login(self.keyring, UUID(subscription_id), row[0])


@pytest.fixture
async def api(database: Any) -> AsyncIterator[Api]:
    async with (
        await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection,
        make_pool(database.service_dsn, name="broker subscriptions test", limits=LIMITS) as pool,
        Targets(allowed=LOOPBACK, total_seconds=2) as targets,
    ):
        keyring = await load_keyring(connection, MasterKeys([os.urandom(32)]))
        _, key = await create_key(
            connection, name="test", scopes=[Scope.SUBSCRIPTIONS], created_by="test"
        )
        context = served_context(
            pool=pool,
            keyring=keyring,
            waker=Wakes(),
            readings=PersonalReads(pool),
            targets=targets,
            allowed=LOOPBACK,
        )
        calls = routes(context)
        async with TestClient(TestServer(build_app(calls, keys=Keys(pool)))) as client:
            yield Api(client, key, connection, keyring)


async def test_a_login_is_shown_by_no_call_and_stands_nowhere_in_the_clear(api: Api) -> None:
    made = await api.make()
    assert (made["url"], made["has_login"]) == (SHOWN, True)
    for method, path in (
        ("GET", ""),
        ("GET", f"/{made['id']}"),
        ("POST", f"/{made['id']}/pause"),
        ("POST", f"/{made['id']}/rotate-secret"),
    ):
        _, _, text = await api(method, path)
        assert b"hunter2" not in text
        assert b"user:" not in text
    assert await api.login(made["id"]) == Login("user", "hunter2")
    dump = await (
        await api.connection.execute("SELECT s::text FROM statesvc.subscription s")
    ).fetchall()
    actions = await (
        await api.connection.execute("SELECT encode(canonical, 'escape') FROM statesvc.action")
    ).fetchall()
    stored = str(dump) + str(actions)
    assert "broker.invalid" in stored
    for secret in (b"hunter2", base64.b64encode(b"hunter2"), b"hunter2".hex().encode()):
        assert secret.decode() not in stored


async def test_a_sealed_login_opens_for_its_subscription_alone(api: Api) -> None:
    made = await api.make()
    query = "SELECT sealed_login FROM statesvc.subscription"
    row = await (await api.connection.execute(query, binary=True)).fetchone()
    assert row is not None
    with pytest.raises(SealError):
        open_login(api.keyring, UUID(int=0), row[0])
    assert open_login(api.keyring, UUID(made["id"]), row[0]) is not None


@pytest.mark.parametrize(
    ("url", "login"),
    [
        (SHOWN, Login("user", "hunter2")),
        ("nats+tls://other:word@broker.invalid/shipments", Login("other", "word")),
        ("nats+tls://elsewhere.invalid/shipments", None),
        ("nats+tls://broker.invalid/other", None),
        ("https://8.8.8.8/hook", None),
    ],
)
async def test_a_login_follows_no_url_but_the_one_it_came_with(
    api: Api, url: str, login: Login | None
) -> None:
    made = await api.make()
    status, changed, _ = await api("PATCH", f"/{made['id']}", {"url": url})
    assert (status, changed["has_login"]) == (200, login is not None)
    assert await api.login(made["id"]) == login
    await api("PATCH", f"/{made['id']}", {"coalesce": False})
    assert await api.login(made["id"]) == login


async def test_a_deleted_subscription_keeps_no_login(api: Api) -> None:
    made = await api.make()
    assert (await api("DELETE", f"/{made['id']}"))[0] == 204
    assert await api.login(made["id"]) is None


async def test_a_test_send_says_what_the_broker_said(api: Api) -> None:
    made = await api.make("nats://user:hunter2@127.0.0.1:1/shipments")
    status, tried, text = await api("POST", f"/{made['id']}/test")
    assert (status, tried["outcome"], tried["status_code"], tried["detail"]) == (
        200,
        "connection_refused",
        None,
        None,
    )
    assert b"hunter2" not in text

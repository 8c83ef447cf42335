"""The calls of `/v1/subscriptions` on a real database, and a subscriber that refuses."""

import os
from collections.abc import AsyncIterator
from ipaddress import ip_network
from typing import Any

import orjson
import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer
from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys
from statesvc.api.personal_reads import PersonalReads
from statesvc.api.served_context import served_context
from statesvc.api.subscriptions.routes import routes
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import PoolLimits, make_pool
from statesvc.delivery.targets import Targets
from statesvc.http.app import build_app
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.key_store import Scope, create_key
from tests.contract import Contract, contract_of

LOOPBACK = (ip_network("127.0.0.0/8"),)
URL = "https://subscriber.invalid/hook"
LIMITS = PoolLimits(
    connections_max=2,
    acquire_seconds=2,
    statement_seconds=5,
    lock_seconds=2,
    idle_in_transaction_seconds=5,
)


class Wakes:
    """Remembers which channels were woken."""

    def __init__(self) -> None:
        self.channels: list[str] = []

    def wake(self, channel: str) -> None:
        self.channels.append(channel)


class Api:
    """The calls, with a key of scope `subscriptions`."""

    def __init__(
        self,
        client: TestClient[Any, Any],
        key: str,
        wakes: Wakes,
        connection: AsyncConnection[Any],
        contract: Contract,
    ) -> None:
        self.client, self.key, self.wakes, self.connection, self.contract = (
            client,
            key,
            wakes,
            connection,
            contract,
        )

    async def __call__(
        self, method: str, path: str = "", body: Any = None, **query: Any
    ) -> tuple[int, Any]:
        response: ClientResponse = await self.client.request(
            method,
            f"/v1/subscriptions{path}",
            json=body,
            params=query,
            headers={"Authorization": f"Bearer {self.key}"},
        )
        text = await response.read()
        answered = orjson.loads(text) if text else None
        self.contract.check(
            method, response.url.raw_path, response.status, response.content_type, answered
        )
        return response.status, answered

    async def make(self, **wish: Any) -> Any:
        status, made = await self("POST", body={"url": URL, **wish})
        assert status == 201, made
        return made

    async def another(self, *scopes: Scope, owner: str = "shop") -> str:
        """Create a further key, of the same owner unless said otherwise."""
        _, key = await create_key(
            self.connection, name="another", scopes=scopes, created_by="test", owner=owner
        )
        return key

    async def rows(self, query: str) -> list[Any]:
        return list(await (await self.connection.execute(query)).fetchall())


@pytest.fixture
async def api(database: Any) -> AsyncIterator[Api]:
    async with (
        await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection,
        make_pool(database.service_dsn, name="subscriptions test", limits=LIMITS) as pool,
        Targets(allowed=LOOPBACK, total_seconds=2) as targets,
    ):
        keyring = await load_keyring(connection, MasterKeys([os.urandom(32)]))
        _, key = await create_key(
            connection, name="test", scopes=[Scope.SUBSCRIPTIONS], created_by="test", owner="shop"
        )
        wakes = Wakes()
        context = served_context(
            pool=pool,
            keyring=keyring,
            waker=wakes,
            readings=PersonalReads(pool),
            targets=targets,
            allowed=LOOPBACK,
        )
        calls = routes(context)
        async with TestClient(TestServer(build_app(calls, keys=Keys(pool)))) as client:
            yield Api(client, key, wakes, connection, contract_of(calls))


@pytest.fixture
async def heard() -> AsyncIterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """Run a subscriber that answers 500; return its URL, and what it got."""
    got: list[tuple[dict[str, str], bytes]] = []

    async def hook(request: web.Request) -> web.StreamResponse:
        got.append((dict(request.headers), await request.read()))
        return web.Response(status=500)

    app = web.Application()
    app.router.add_post("/hook", hook)
    async with TestServer(app, host="127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.port}/hook", got

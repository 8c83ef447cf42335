"""The calls of `/v1/subscriptions` on a real database, and a subscriber that refuses."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from psycopg import AsyncConnection

from statesvc.http.keys.key_store import Scope, create_key
from tests.world.api import Api

LOOPBACK = (ip_network("127.0.0.0/8"),)
URL = "https://subscriber.invalid/hook"


@dataclass
class Subscriptions:
    """The calls, with a key of scope `subscriptions`."""

    served: Api
    key: str = ""

    @property
    def connection(self) -> AsyncConnection[Any]:
        return self.served.connection

    @property
    def woken(self) -> list[str]:
        return self.served.woken

    async def __call__(
        self, method: str, path: str = "", body: Any = None, **query: Any
    ) -> tuple[int, Any]:
        path = f"/v1/subscriptions{path}"
        reply = await self.served.call(method, path, key=self.key, json=body, params=query)
        return reply.status, reply.body

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
        return await self.served.rows(query)


@pytest.fixture
def subscriber_networks() -> Any:
    return LOOPBACK


@pytest.fixture
async def api(api: Api) -> Subscriptions:
    made = Subscriptions(api)
    made.key = await made.another(Scope.SUBSCRIPTIONS)
    return made


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

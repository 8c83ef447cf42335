"""One subscription in two cells: under one id, with one secret, whatever cell is away when it is made, changed or ended."""

import base64
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys
from statesvc.api.personal_reads import PersonalReadings
from statesvc.api.subscriptions.routes import routes as cell_routes
from statesvc.cells.directory import checked_directory
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import make_pool
from statesvc.delivery.targets import Targets
from statesvc.gateway import merged_lists, subscriptions_over_cells
from statesvc.gateway.cell_client import CellClient
from statesvc.http.api_keys import Keys
from statesvc.http.app import build_app
from statesvc.http.key_store import Scope, copy, create_key, read_all
from statesvc.log.archive.log_archive import LogArchive
from statesvc.subscriptions.subscription_secrets import open_secrets
from statesvc.telemetry.metrics import Telemetry
from tests.statesvc.subscriptions.conftest import LIMITS, LOOPBACK, URL, Wakes
from tests.world import postgres
from tests.world.database import Database


@dataclass
class RunningCell:
    """The calls about subscriptions of one cell; `is_away`: it answers 502, as a proxy does before a dead one."""

    connection: AsyncConnection[Any]
    keyring: Keyring
    is_away: bool = False

    async def secrets(self, subscription_id: str) -> list[bytes]:
        query = "SELECT sealed_secrets FROM statesvc.subscription WHERE subscription_id = %s"
        rows = await (await self.connection.execute(query, (subscription_id,))).fetchall()
        return [secret.key for secret in open_secrets(self.keyring, UUID(subscription_id), rows[0][0])] if rows else []


@dataclass
class Gateway:
    """Before two cells, with a key that is good in both."""

    cells: dict[str, RunningCell]
    client: TestClient[Any, Any]
    key: str

    async def __call__(self, method: str, path: str = "", body: Any = None, *, cell: str | None = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.key}", **({} if cell is None else {"Statesvc-Cell": cell})}
        async with self.client.request(method, f"/v1/subscriptions{path}", json=body, headers=headers) as answer:
            return answer.status, (await answer.json() if await answer.read() else None)


@asynccontextmanager
async def running_cell(database: Database) -> AsyncIterator[tuple[RunningCell, int]]:
    async with (
        await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection,
        make_pool(database.service_dsn, name="cell", limits=LIMITS) as pool,
        Targets(allowed=LOOPBACK, total_seconds=2) as targets,
    ):
        cell = RunningCell(connection, await load_keyring(connection, MasterKeys([os.urandom(32)])))
        readings = PersonalReadings(pool)
        calls = cell_routes(
            pool=pool,
            keyring=cell.keyring,
            waker=Wakes(),
            targets=targets,
            allowed=LOOPBACK,
            archive=LogArchive(None),
            readings=readings,
        )
        app = build_app(calls, keys=Keys(pool))

        @web.middleware
        async def reached(request: web.Request, handler: Any) -> web.StreamResponse:
            return web.Response(status=502) if cell.is_away else await handler(request)

        app.middlewares.insert(0, reached)
        async with TestServer(app) as server:
            assert server.port is not None
            yield cell, server.port


@pytest.fixture
async def gateway(server: postgres.Server, database: Database, tmp_path: Path) -> AsyncIterator[Gateway]:  # noqa: ARG001
    name = postgres.create_database(server, postgres.TEMPLATE)
    try:
        async with AsyncExitStack() as stack:
            north, south = [await stack.enter_async_context(running_cell(one)) for one in (database, Database.of(server.on(name)))]
            _, key = await create_key(north[0].connection, name="test", scopes=[Scope.SUBSCRIPTIONS], created_by="test", owner="shop")
            for stored in await read_all(north[0].connection):
                await copy(south[0].connection, stored, actor="test")
            urls = {name: {"urls": [f"http://127.0.0.1:{port}"]} for name, (_, port) in (("north", north), ("south", south))}
            directory = checked_directory({"epoch": 1, "default": "north", "cells": urls, "carriers": {"ups": "south"}}, "test")
            telemetry = Telemetry()
            stack.callback(telemetry.close)
            asked = CellClient(directory, telemetry, answer_seconds=20)
            stack.push_async_callback(asked.close)
            calls = [*merged_lists.routes(asked), *subscriptions_over_cells.routes(asked)]
            client: TestClient[Any, Any] = await stack.enter_async_context(TestClient(TestServer(build_app(calls, keys=None))))
            yield Gateway({"north": north[0], "south": south[0]}, client, key)
    finally:
        postgres.drop_database(server, name)


async def test_a_subscription_is_one_in_all_cells_from_its_making_to_its_end(gateway: Gateway) -> None:
    status, made = await gateway("POST", body={"url": URL, "rate_per_second": 9})
    assert (status, made["partial"], made["rate_per_second"]) == (201, [], 9)
    assert {name: one["rate_per_second"] for name, one in made["cells"].items()} == {"north": 4.5, "south": 4.5}
    shown = base64.b64decode(made["secret"].removeprefix("whsec_"))
    assert [await cell.secrets(made["id"]) for cell in gateway.cells.values()] == [[shown]] * 2, "sealed under keys of their own"

    path = f"/{made['id']}"
    # a share hangs on both: the rate that stays is divided anew
    status, changed = await gateway("PATCH", path, {"carriers": ["ups"]})
    assert (status, changed["rate_per_second"], changed["cells"]["south"]["rate_per_second"]) == (200, 9, 9)
    status, changed = await gateway("PATCH", path, {"rate_per_second": 5})
    assert (changed["carriers"], changed["cells"]["south"]["rate_per_second"]) == (["ups"], 5)
    status, rotated = await gateway("POST", f"{path}/rotate-secret?grace_hours=0&signature=ed25519")
    assert (status, rotated["secret"], len(rotated["public_keys"])) == (200, None, 1)
    north, south = [await cell.secrets(made["id"]) for cell in gateway.cells.values()]
    assert north == south != [shown]
    assert (await gateway("POST", f"{path}/pause", cell="south"))[1]["state"] == "paused"
    status, one = await gateway("GET", path)
    assert (one["state"], one["cells"]["north"]["state"], "limiter" in one["cells"]["north"]) == ("paused", "active", True)
    assert (await gateway("POST", f"{path}/resume"))[1]["state"] == "active"
    status, page = await gateway("GET")
    assert sorted((item["id"], item["cell"]) for item in page["items"]) == [(made["id"], "north"), (made["id"], "south")]
    assert await gateway("DELETE", path) == (204, None)
    assert (await gateway("DELETE", path))[0] == 404


async def test_what_a_cell_that_is_away_missed_is_made_good_by_the_same_call(gateway: Gateway) -> None:
    gateway.cells["south"].is_away = True
    status, refused = await gateway("POST", body={"url": URL, "signature": "ed25519"})
    assert (status, refused["code"], (await gateway("GET"))[1]["items"]) == (503, "cell_unavailable", []), "nothing is begun"
    status, made = await gateway("POST", body={"url": URL, "rate_per_second": 3})
    assert (status, made["partial"], list(made["cells"])) == (201, ["south"], ["north"])
    path, again = f"/{made['id']}", {"url": URL, "rate_per_second": 3, "secret": made["secret"]}
    assert (await gateway("PUT", path, again))[1]["partial"] == ["south"]
    for method, call, body in (
        ("PATCH", "", {"coalesce": False}),
        ("POST", "/pause", None),
        ("PUT", "/secret", {"secret": made["secret"]}),
    ):
        assert (await gateway(method, path + call, body))[1]["partial"] == ["south"]
    assert (await gateway("POST", f"{path}/resume"))[0] == 503
    assert (await gateway("PATCH", path, {"coalesce": True}))[0] == 503
    assert (await gateway("GET", f"/{uuid4()}"))[0] == 503, "who is away may have it"

    gateway.cells["south"].is_away = False
    assert (await gateway("GET", path))[1]["cells"].keys() == {"north"}
    status, put = await gateway("PUT", path, again)
    assert (status, put["partial"], put["cells"].keys()) == (201, [], {"north", "south"})
    assert (await gateway("PUT", path, again))[0] == 200
    north, south = [await cell.secrets(made["id"]) for cell in gateway.cells.values()]
    assert north == south

    # a rotation that one cell missed: the secret is in the answer, and is put there
    gateway.cells["north"].is_away = True
    status, rotated = await gateway("POST", f"{path}/rotate-secret")
    assert (status, rotated["partial"]) == (200, ["north"])
    gateway.cells["north"].is_away = False
    assert (await gateway("PUT", f"{path}/secret", {"secret": rotated["secret"]}))[1]["partial"] == []
    assert [await cell.secrets(made["id"]) for cell in gateway.cells.values()] == [await gateway.cells["south"].secrets(made["id"])] * 2

    for cell in gateway.cells.values():
        cell.is_away = True
    assert (await gateway("POST", body={"url": URL}))[0] == 503


async def test_a_refusal_is_the_cells_own(gateway: Gateway) -> None:
    chosen = {"url": URL, "secret": "whsec_" + "A" * 32}
    calls: list[tuple[str, str, Any, int]] = [
        ("POST", "", [], 422),
        ("POST", "", {"url": "ftp://x"}, 422),
        ("POST", "", chosen, 422),
        ("POST", "", {"url": URL, "rate_per_second": "many"}, 422),
        ("POST", "", {"url": URL, "carriers": "ups", "rate_per_second": 1}, 422),
        ("PUT", "/none", chosen, 422),
        ("PUT", "/%2e%2e%2fqueue", chosen, 422),
        ("PATCH", f"/{uuid4()}", {"coalesce": False}, 404),
        ("POST", f"/{uuid4()}/rotate-secret", None, 404),
        ("PUT", f"/{uuid4()}/secret", {"secret": "x"}, 422),
    ]
    for method, path, body, status in calls:
        assert (await gateway(method, path, body))[0] == status, (method, path)
    assert (await gateway("GET"))[1]["items"] == []


async def test_a_key_that_one_cell_lacks_leaves_it_out_of_what_is_made_and_is_refused_in_what_is_changed(gateway: Gateway) -> None:
    _, gateway.key = await create_key(
        gateway.cells["north"].connection, name="new", scopes=[Scope.SUBSCRIPTIONS], created_by="test", owner="shop"
    )
    status, made = await gateway("POST", body={"url": URL})
    assert (status, made["partial"]) == (201, ["south"])
    assert (await gateway("PATCH", f"/{made['id']}", {"coalesce": False}))[0] == 401

"""nginx and Envoy with what is written for them: each path goes where the directory says, and a cell that is away is answered for."""

import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from statesvc.cells.directory import CellDirectory, checked_directory, parse_directory
from statesvc.cells.proxies import (
    CARRIER_PATHS,
    CELL_HEADER,
    envoy_configuration,
    nginx_configuration,
)
from tests.openapi_document import document
from tests.statesvc.cells.test_directory import GOOD
from tests.world.ports import free_port
from tests.world.programs import required, required_envoy
from tests.world.proxies import envoy_before, nginx_before

CLAIMED = "192.0.2.1"
"""An address that a caller says a call came from."""
SECRET_HEADER = "webhook_key"
"""ClickPost's: many proxies drop a header with an underscore."""
Proxy = Callable[..., AbstractAsyncContextManager[object]]

PLACES = {
    "/v1/webhooks/ups": "south",
    "/v1/webhooks/ups?token=1": "south",
    "/v1/webhooks/ups/oauth/token": "south",
    "/v1/webhooks/17track": "north",
    "/v1/webhooks/fedex": "north",
    "/v1/webhooks/upsx": "north",
    "/v1/webhooks/nobody": "north",
    "/v1/shipments/ups/1Z": "south",
    "/v1/shipments/ups/1Z%2F2": "south",
    "/v1/shipments/ups/1Z/evidence": "south",
    "/v1/rollouts/ups/diffs": "south",
}
WITHOUT_CARRIER = (
    "/v1/shipments/0c7e1d5e-8f0c-0000-0000-000000000000",
    "/v1/shipments",
    "/v1/shipments?carrier_id=ups",
    "/v1/events",
    "/readyz",
    "/",
)


def test_nginx_takes_the_configuration(tmp_path: Path) -> None:
    nginx = required("nginx", "nginx-light")
    configuration = nginx_configuration(parse_directory(GOOD, "cells.toml"), port=18080).replace(
        "south.internal", "127.0.0.9"
    )
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\nclient_body_temp_path {tmp_path}/body;\n{configuration}}}\n"
    )
    checked = subprocess.run(
        [nginx, "-t", "-e", f"{tmp_path}/error", "-p", tmp_path, "-c", tmp_path / "nginx.conf"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_envoy_takes_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "envoy.yaml").write_text(
        envoy_configuration(parse_directory(GOOD, "cells.toml"), port=18080)
    )
    command = [
        required_envoy(),
        "--mode",
        "validate",
        "--disable-hot-restart",
        "--config-path",
        f"{tmp_path}/envoy.yaml",
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


@dataclass(frozen=True)
class Server:
    """`calls`: the bodies that it got."""

    url: str
    calls: list[str]


@asynccontextmanager
async def server(name: str) -> AsyncIterator[Server]:
    """Answer a call with its name, the address that the proxy says it came from, and the secret; a POST of `break` with nothing."""
    calls = []

    async def answer(request: web.Request) -> web.Response:
        said = await request.text()
        calls.append(said)
        if said == "break":
            assert request.transport is not None
            request.transport.abort()
        seen = {
            "server": name,
            "from": request.headers["X-Forwarded-For"],
            "secret": request.headers.get(SECRET_HEADER),
        }
        return web.json_response(seen, status=429 if said == "slower" else 200)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(application) as running:
        yield Server(f"http://127.0.0.1:{running.port}", calls)


def directory_of(**urls: list[str]) -> CellDirectory:
    cells = {name: {"urls": found} for name, found in urls.items()}
    known = {
        "epoch": 1,
        "default": "north",
        "cells": cells,
        "carriers": {"ups": "south", "17track": "north"},
    }
    return checked_directory(known, "the test's directory")


@asynccontextmanager
async def running(
    before: Proxy, folder: Path, directory: CellDirectory
) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a session of the proxy."""
    port = free_port()
    async with (
        before(directory, folder, port=port),
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        yield session


@pytest.mark.parametrize("before", [nginx_before, envoy_before])
async def test_each_path_goes_where_the_directory_says(before: Proxy, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        servers = {
            name: await stack.enter_async_context(server(name)) for name in ("north", "south")
        }
        directory = directory_of(**{name: [each.url] for name, each in servers.items()})
        session = await stack.enter_async_context(running(before, tmp_path, directory))
        found = {}
        for path in PLACES:
            async with session.get(
                path, headers={"X-Forwarded-For": CLAIMED, SECRET_HEADER: "s"}
            ) as answer:
                said = await answer.json()
            found[path] = said["server"]
            # Envoy writes an address of the machine for a caller on it
            assert said["from"].split(",")[-1].strip() != CLAIMED
            assert said["secret"] == "s"
        assert found == PLACES
        for path in WITHOUT_CARRIER:
            for name in ("north", "south"):
                async with session.get(path, headers={CELL_HEADER: name}) as answer:
                    assert (await answer.json())["server"] == name, path
            for wrong in ({}, {CELL_HEADER: "west"}, {CELL_HEADER: ""}):
                async with session.get(path, headers=wrong) as answer:
                    assert (answer.status, answer.content_type) == (
                        422,
                        "application/problem+json",
                    ), path
                    assert (await answer.json())["code"] == "cell_unnamed"


@pytest.mark.parametrize("before", [nginx_before, envoy_before])
async def test_a_cell_that_is_away_is_answered_for_and_the_others_go_on(
    before: Proxy, tmp_path: Path
) -> None:
    async with server("north") as north:
        directory = directory_of(
            north=[north.url],
            south=[f"http://127.0.0.1:{free_port()}"],
        )
        async with running(before, tmp_path, directory) as session:
            for body in ("push", "x" * 300_000):
                async with session.post("/v1/webhooks/ups", data=body) as answer:
                    assert (answer.status, answer.headers.get("Retry-After")) == (503, "2"), (
                        await answer.text()
                    )
                    assert answer.content_type == "application/problem+json"
                    assert (await answer.json())["code"] == "cell_unavailable"
            async with session.post("/v1/webhooks/fedex", data="slower") as answer:
                assert (answer.status, answer.headers.get("Retry-After")) == (429, None)


@pytest.mark.parametrize("before", [nginx_before, envoy_before])
async def test_a_call_that_no_server_took_goes_to_the_next_and_no_other_is_repeated(
    before: Proxy, tmp_path: Path
) -> None:
    async with server("north") as north:
        directory = directory_of(
            north=[f"http://127.0.0.1:{free_port()}", north.url],
            south=[f"http://127.0.0.1:{free_port()}"],
        )
        async with running(before, tmp_path, directory) as session:
            for _ in range(20):
                async with session.post("/v1/webhooks/fedex", data="push") as answer:
                    assert (answer.status, (await answer.json())["server"]) == (200, "north")
            async with session.post("/v1/webhooks/fedex", data="break") as answer:
                assert answer.status == 503
        assert north.calls.count("break") == 1


def test_each_call_about_a_carrier_goes_to_its_cell() -> None:
    # but for rules of what is expected: those of `all` are stated in each cell, which the header names
    about_carriers = {
        parts[2]
        for path in document()["paths"]
        if (parts := path.split("/"))[3:4] == ["{carrier_id}"]
    }
    assert about_carriers == {*CARRIER_PATHS, "expectations"}

"""The proxies of docs/engines.md, with a real nginx and a real Envoy: each carrier
reaches its installation.
"""

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import yaml
from yarl import URL

from tests.deploy.test_mirror import Upstream
from tests.world.ports import free_port
from tests.world.proxies import envoy_with, nginx_with

pytestmark = [pytest.mark.usefixtures("own_processes"), pytest.mark.slow]

PAGE: Final = (Path(__file__).parents[2] / "docs" / "engines.md").read_text("utf-8")
HTTP_MANAGER: Final = (
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3"
    ".HttpConnectionManager"
)
ROUTER: Final = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
PLACES: Final = {
    "/v1/webhooks/ups": "south",
    "/v1/webhooks/ups?token=1": "south",
    "/v1/webhooks/ups/oauth/token": "south",
    "/v1/shipments/ups/1Z%2F2/evidence": "south",
    "/v1/webhooks/upsx": "north",
    "/v1/webhooks/17track": "north",
    "/v1/shipments/dhl_unified/JJD1": "north",
    "/v1/shipments": 421,
    "/v1/shipments/0c7e1d5e-8f0c-0000-0000-000000000000": 421,
    "/v1/events": 421,
}


def code(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(text)


def nginx_configuration(ports: dict[str, int], port: int) -> str:
    text = code("nginx")
    for stated, here in (
        ("10.0.1.1:8080", f"127.0.0.1:{ports['north']}"),
        ("10.0.2.1:8080", f"127.0.0.1:{ports['south']}"),
        ("listen 8443", f"listen 127.0.0.1:{port}"),
    ):
        assert stated in text
        text = text.replace(stated, here)
    return text


def _envoy_address(port: int) -> dict[str, object]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def envoy_configuration(ports: dict[str, int], port: int) -> str:
    """Return a configuration around the routes of the page."""
    manager = {
        "@type": HTTP_MANAGER,
        "stat_prefix": "statesvc",
        "use_remote_address": True,
        "normalize_path": True,
        "http_filters": [
            {"name": "envoy.filters.http.router", "typed_config": {"@type": ROUTER}},
        ],
        "route_config": {
            "virtual_hosts": [
                {"name": "all", "domains": ["*"], "routes": yaml.safe_load(code("yaml"))}
            ]
        },
    }
    filters = [
        {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager},
    ]
    clusters = [
        {
            "name": name,
            "connect_timeout": "2s",
            "load_assignment": {
                "cluster_name": name,
                "endpoints": [
                    {"lb_endpoints": [{"endpoint": {"address": _envoy_address(upstream)}}]}
                ],
            },
        }
        for name, upstream in ports.items()
    ]
    listener = {"address": _envoy_address(port), "filter_chains": [{"filters": filters}]}
    return str(
        yaml.safe_dump({"static_resources": {"listeners": [listener], "clusters": clusters}})
    )


@pytest.mark.parametrize(
    ("configuration", "proxy"),
    [(nginx_configuration, nginx_with), (envoy_configuration, envoy_with)],
)
async def test_each_carrier_reaches_its_installation_and_one_that_is_away_hurts_no_other(
    configuration: Callable[[dict[str, int], int], str],
    proxy: Callable[..., AbstractAsyncContextManager[object]],
    tmp_path: Path,
) -> None:
    upstreams = {name: Upstream(name) for name in ("north", "south")}
    port = free_port()
    text = configuration({name: each.port for name, each in upstreams.items()}, port)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(upstreams["north"].running())
        await stack.enter_async_context(proxy(text, tmp_path, port=port))
        session = await stack.enter_async_context(aiohttp.ClientSession())

        async def push(path: str) -> tuple[int, str]:
            url = URL(f"http://127.0.0.1:{port}{path}", encoded=True)
            headers = {"webhook_key": "secret"}
            async with session.post(url, data=b"x" * 300_000, headers=headers) as answer:
                return answer.status, await answer.text()

        async with upstreams["south"].running():
            found = {path: await push(path) for path in PLACES}
        assert {
            path: text if status == 200 else status for path, (status, text) in found.items()
        } == PLACES
        for upstream in upstreams.values():
            assert {headers["webhook_key"] for _, headers, _ in upstream.got} == {"secret"}
            assert {len(body) for _, _, body in upstream.got} == {300_000}
        assert (await push("/v1/webhooks/ups"))[0] in {502, 503}
        assert await push("/v1/webhooks/17track") == (200, "north")

"""A stream that is cut off before its first change, in Python and in a browser; Node has a file of
its own.
"""

import asyncio
import importlib
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Page, Route

from tests.acceptance.processes import BOOTSTRAP_KEY, ROOT, Service
from tests.clients.cut_stream import is_lost
from tests.world.browser import page

SNIPPET: Final = re.compile(r"^```html\n([\s\S]*?)^```$", re.MULTILINE)

pytestmark = pytest.mark.usefixtures("own_processes", "installed_client")


async def follow_in_python(url: str) -> str:
    async with importlib.import_module("statesvc_client").AsyncClient(
        url, key=BOOTSTRAP_KEY
    ) as client:
        return str((await anext(client.stream())).transition.tracking_number)


async def follow_in_a_thread(url: str) -> str:
    def first() -> str:
        with importlib.import_module("statesvc_client").Client(url, key=BOOTSTRAP_KEY) as client:
            return str(next(client.stream()).transition.tracking_number)

    return await asyncio.to_thread(first)


async def follow_in_a_page(service: Service, tab: Page, url: str) -> str:
    """Open the page that docs/subscribers.md shows."""
    shown = SNIPPET.search(ROOT.joinpath("docs", "subscribers.md").read_text("utf-8"))
    assert shown is not None
    script = shown[1].replace("https://statesvc.example.com", url)
    html = f"<script>const seen = []; const show = change => seen.push(change)</script>{script}"

    async def ticket(route: Route) -> None:
        _, made = await service.post(
            "/v1/stream/tickets", "{}", **{"Content-Type": "application/json"}
        )
        await route.fulfill(json=made)

    await tab.add_init_script("Math.random = () => 0")
    await tab.route(f"{url}/page", lambda route: route.fulfill(body=html, content_type="text/html"))
    await tab.route("**/my-server/ticket", ticket)
    await tab.goto(f"{url}/page")
    first = await tab.wait_for_function("seen[0]?.tracking_number", timeout=30_000)
    return str(await first.json_value())


async def test_a_cut_stream_loses_no_change_for_any_client(
    service_maker: Callable[..., Awaitable[Service]], tmp_path: Path
) -> None:
    async with await service_maker(tmp_path, {}) as service:
        await service.start("api", "worker", "sealer")
        assert not await is_lost(service, follow_in_python)
        assert not await is_lost(service, follow_in_a_thread)
        async with page() as tab:
            assert not await is_lost(service, lambda url: follow_in_a_page(service, tab, url))

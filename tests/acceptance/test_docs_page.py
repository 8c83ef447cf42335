"""The page of the calls in a real browser: all of it is there, and it works under its own
policy.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from tests.acceptance.processes import Service
from tests.world import browser

AXE_MILLISECONDS = 600_000
"""It looks at each of thousands of elements."""
LOGO = "cdn.redoc.ly"
"""Host of Redoc's logo, in its footer; the policy refuses to load it."""


async def test_the_page_shows_every_call_and_leads_to_a_problem(
    service_maker: Callable[..., Any], tmp_path: Path
) -> None:
    service: Service = await service_maker(tmp_path)
    async with service, browser.page() as page:
        flaws: list[str] = []
        page.on(
            "console",
            lambda said: (
                flaws.append(said.text) if said.type == "error" and "docs" in said.text else None
            ),
        )
        page.on("pageerror", lambda error: flaws.append(str(error)))
        asked: list[str] = []
        page.on("response", lambda answer: asked.append(answer.url))
        await service.start("api")
        await page.goto(f"{service.api.url}/docs#problem-too_many_requests")
        row = page.locator("#problem-too_many_requests")
        await expect(row).to_be_in_viewport(timeout=30_000)
        document = await (await service.session.get(f"{service.api.url}/openapi.json")).json()
        calls = [
            call["operationId"] for calls in document["paths"].values() for call in calls.values()
        ]
        for call in ("list_shipments", "set_shipment_references", "get_checkpoint"):
            assert call in calls
        sections = page.locator('[id*="/operation/"]')
        await expect(sections).to_have_count(len(calls) + len(document["webhooks"]), timeout=60_000)
        for size in (browser.DESKTOP, browser.PHONE):
            await page.set_viewport_size(size)
            assert await browser.sideways(page) == 0
        assert {url for url in asked if not url.startswith((service.api.url, "blob:"))} == set()
        assert [flaw for flaw in flaws if LOGO not in flaw] == []


@pytest.mark.soak
async def test_axe_finds_no_fault(service_maker: Callable[..., Any], tmp_path: Path) -> None:
    service: Service = await service_maker(tmp_path)
    async with service, browser.page() as page:
        page.set_default_timeout(AXE_MILLISECONDS)
        await service.start("api")
        await page.goto(f"{service.api.url}/docs")
        calls = (await (await service.session.get(f"{service.api.url}/openapi.json")).json())[
            "paths"
        ]
        await expect(page.locator('[id*="/operation/"]').nth(len(calls))).to_be_attached(
            timeout=60_000
        )
        assert await browser.faults(page) == []

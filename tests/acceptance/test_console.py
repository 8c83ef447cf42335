"""Pages in a real browser: the console, and the calls under their own policy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.acceptance.processes import BOOTSTRAP_KEY
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import ups_alert
from tests.world import browser


async def log_in(page: Page, url: str, key: str, *, may_change: bool = False) -> None:
    await page.goto(f"{url}/console")
    await page.get_by_label("API key").fill(key)
    if may_change:
        await page.get_by_label("Allow changes").check()
    await page.get_by_role("button", name="Log in").click()


def flaws_of(page: Page) -> list[str]:
    """Collect what the browser complains of, from now on."""
    flaws: list[str] = []
    page.on("console", lambda said: flaws.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: flaws.append(str(error)))
    return flaws


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.soak)])
async def test_the_overview_says_what_is_wrong_and_updates_itself(
    service_maker: ServiceMaker, tmp_path: Path, scheme: str
) -> None:
    async with await service_maker(tmp_path) as service, browser.page(scheme=scheme) as page:
        flaws = flaws_of(page)
        await service.start("api")
        await page.goto(f"{service.api.url}/console")
        assert await browser.faults(page) == []
        await browser.photograph(page, f"login-{scheme}")
        await log_in(page, service.api.url, BOOTSTRAP_KEY)
        await expect(page.locator(".trouble.now").first).to_contain_text("no worker was heard of")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("need")
        assert (
            await service.webhook(
                "ups", ups_alert("1ZCONSOLE0000000001", "I/OT", day=3, minute=300).body
            )
        )[0] == 200
        await page.mouse.move(0, 0)
        await expect(page.get_by_role("region", name="Carriers")).to_contain_text(
            "ups", timeout=30_000
        )
        await expect(page.get_by_text("new 1", exact=False)).to_be_visible(timeout=30_000)
        for name, size in (("phone", browser.PHONE), ("desktop", browser.DESKTOP)):
            await page.set_viewport_size(size)
            assert await browser.faults(page) == []
            assert await browser.sideways(page) == 0
            await browser.photograph(page, f"overview-{scheme}-{name}")
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#main")).to_be_focused()
        await page.get_by_role("button", name="Pause updates").click()
        await expect(page.get_by_role("button", name="Resume updates")).to_have_attribute(
            "aria-pressed", "true"
        )
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_label("API key")).to_be_visible()
        assert flaws == []


async def test_the_console_runs_no_script_but_its_own(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with await service_maker(tmp_path) as service, browser.page() as page:
        await service.start("api")
        await log_in(page, service.api.url, BOOTSTRAP_KEY)
        foreign = (
            "const s = document.createElement('script'); s.textContent = 'window.ran = true';"
            " document.body.append(s)"
        )
        assert await page.evaluate(f"() => {{ {foreign}; return window.ran; }}") is None
        await page.get_by_role("button", name="Pause updates").wait_for()
        assert await page.evaluate("document.cookie") == ""
        assert await page.evaluate("localStorage.length") == 0


AXE_MILLISECONDS = 600_000
"""It looks at each of thousands of elements."""
LOGO = "cdn.redoc.ly"
"""Host of Redoc's logo, in its footer; the policy refuses to load it."""


async def test_the_page_shows_every_call_and_leads_to_a_problem(
    service_maker: Callable[..., Any], tmp_path: Path
) -> None:
    async with await service_maker(tmp_path) as service, browser.page() as page:
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
    async with await service_maker(tmp_path) as service, browser.page() as page:
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

"""What an operator does on the console, in a real browser: a pile replayed, a body read, a code taught, a receiver paused."""

import pytest
from playwright.async_api import Page, expect

from events.vocabulary import Kind
from statesvc.console import dead_letter_forms
from tests.statesvc.api.test_dead_letter_replay import bury_messages, open_dead_letters
from tests.world import browser
from tests.world.api import Statement
from tests.world.console import Tab

pytestmark = pytest.mark.usefixtures("own_processes")


async def _log_in(page: Page, tab: Tab, scopes: str) -> None:
    await page.goto(str(tab.client.make_url("/console")))
    await page.get_by_label("API key").fill(await tab.api.key(scopes))
    await page.get_by_label("Allow changes").check()
    await page.get_by_role("button", name="Log in").click()


async def _confirm(page: Page, button: str) -> None:
    await page.get_by_label("Why", exact=True).fill("a drill")
    await page.get_by_role("button", name="Show what it would do").click()
    await page.get_by_role("button", name=button, exact=True).click()


async def test_a_pile_is_read_planned_and_replayed_in_parts_by_itself(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letter_forms, "_AT_ONCE", 2)
    await bury_messages(tab.api, *["<img src=x onerror=alert(1)>"] * 5)
    async with browser.page() as page:
        flaws: list[str] = []
        page.on("console", lambda said: flaws.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: flaws.append(str(error)))
        await _log_in(page, tab, "ops audit pii")
        await page.get_by_role("link", name="Dead letters", exact=True).click()
        await page.get_by_role("link", name="normalizer_failed").click()
        assert await browser.faults(page) == []
        await page.get_by_label("Why you read it").fill("a drill")
        await page.get_by_role("button", name="Read the body").click()
        await expect(page.locator("pre")).to_contain_text("<img src=x onerror=alert(1)>")
        await page.set_viewport_size(browser.PHONE)
        assert await browser.sideways(page) == 0
        await page.get_by_role("link", name="normalizer_failed").click()
        await page.get_by_role("link", name="Plan a replay").click()
        await page.get_by_label("Canary").fill("0")
        await _confirm(page, "Replay them")
        await expect(page.locator("#progress")).to_contain_text("No dead letter of the plan remains.", timeout=60_000)
        assert await browser.faults(page) == []
        assert await open_dead_letters(tab.api) == []
        assert flaws == []


async def test_a_code_is_taught_and_a_receiver_paused(tab: Tab, scan: Statement) -> None:
    await tab.api.carriers.say(scan("1Z1", None, kind=Kind.UNMAPPED, type="Q", code="77"))
    await tab.api.call("POST", "/v1/subscriptions", scopes="subscriptions", json={"url": "https://shop.invalid/hook"})
    async with browser.page() as page:
        await page.set_viewport_size(browser.PHONE)
        await _log_in(page, tab, "ops subscriptions")
        await page.goto(str(tab.client.make_url("/console/carriers/ups")))
        await page.get_by_role("link", name="Q/77").click()
        await page.get_by_role("link", name="Map it").click()
        await page.get_by_label("Status").select_option("in_transit")
        await _confirm(page, "Map it")
        await expect(page.get_by_role("status")).to_contain_text("Mapping 1 is in effect.")
        await page.get_by_role("link", name="Subscriptions").click()
        await page.get_by_role("link", name="https://shop.invalid/hook").click()
        await page.get_by_role("link", name="Pause").click()
        await _confirm(page, "Pause it")
        await expect(page.get_by_role("status")).to_contain_text("It is paused.")
        assert await browser.faults(page) == []
        assert await browser.sideways(page) == 0

"""Actions of an operator on the console, in a real browser: a pile replayed, a body read, a code
taught, a receiver paused.
"""

import pytest
from playwright.async_api import Page, expect

from events.vocabulary import Kind
from tests.statesvc.api.test_dead_letter_replay import bury_messages, open_dead_letters, rows
from tests.world import browser
from tests.world.api import Statement
from tests.world.console import ConsoleClient

pytestmark = pytest.mark.usefixtures("own_processes")


async def _confirm(page: Page, button: str) -> None:
    await page.get_by_label("Why", exact=True).fill("a drill")
    await page.get_by_role("button", name="Show what it would do").click()
    await page.get_by_role("button", name=button, exact=True).click()


async def test_a_pile_is_read_planned_and_replayed_in_parts(
    console: ConsoleClient,
) -> None:
    await bury_messages(console.api, *["<img src=x onerror=alert(1)>"] * 5)
    async with browser.page() as page:
        flaws: list[str] = []
        page.on("console", lambda said: flaws.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: flaws.append(str(error)))
        await console.open(page, "ops audit pii")
        await page.get_by_role("link", name="Dead letters").first.click()
        await page.get_by_role("link", name="5", exact=True).click()
        assert await browser.faults(page) == []
        group = page.url
        await page.locator("a[href^='/console/messages/']").first.click()
        await page.get_by_text("Show personal data").click()
        await page.get_by_label("Why").fill("a drill")
        await page.get_by_role("button", name="Show", exact=True).click()
        await expect(page.locator("pre")).to_contain_text("<img src=x onerror=alert(1)>")
        await page.set_viewport_size(browser.PHONE)
        assert await browser.sideways(page) == 0
        await page.goto(group)
        await page.get_by_role("link", name="our reader failed").click()
        assert await browser.faults(page) == []
        await page.get_by_role("link", name="Replay them").click()
        await page.get_by_label("How many").fill("2")
        await _confirm(page, "Replay them")
        await expect(page.locator("#progress")).to_contain_text("3 dead letters of the filter")
        assert await browser.faults(page) == []
        await page.get_by_role("button", name="Go on").click()
        await page.get_by_role("button", name="Go on").click()
        await expect(page.locator("#progress")).to_contain_text("5 dead letters replayed.")
        assert await browser.faults(page) == []
        assert await open_dead_letters(console.api) == []
        reasons = await rows(console.api, "SELECT DISTINCT why FROM statesvc.dead_letter")
        assert reasons == [("a drill",)], "one reason for all parts"
        assert flaws == []


async def test_what_is_taught_held_or_paused_is_undone_too_on_a_phone(
    console: ConsoleClient, scan: Statement
) -> None:
    await console.api.carriers.push(scan("1Z1", None, kind=Kind.UNMAPPED, type="Q", code="77"))
    await console.api.call(
        "POST",
        "/v1/subscriptions",
        scopes="subscriptions",
        json={"url": "https://shop.invalid/hook"},
    )
    await console.api.carriers.execute(
        "INSERT INTO statesvc.notice (kind, target, created_at, details) VALUES"
        " ('subscription.failing', 'x', statesvc.clock(), '{}')"
    )
    async with browser.page() as page:
        await page.set_viewport_size(browser.PHONE)
        await console.open(page, "ops subscriptions")
        await page.goto(str(console.client.make_url("/console/carriers/ups")))
        await page.get_by_role("link", name="Q/77").click()
        await page.get_by_role("link", name="Map the code").click()
        await page.get_by_label("Status").select_option("in_transit")
        await _confirm(page, "Map the code")
        await expect(page.get_by_role("status")).to_contain_text("revision 1; in effect")
        await page.get_by_role("link", name="Take back").click()
        await _confirm(page, "Take it back")
        await _says(page, "revision 2; in effect")
        await _with_keys(page, "Carriers", "ups", "Hold", button="Hold it", is_drastic=True)
        await _says(page, "ups: held; in effect at the next claim")
        await _with_keys(page, "Release", button="Release it")
        await expect(page.get_by_role("status")).to_contain_text(
            "ups: released; in effect at the next claim"
        )
        await _with_keys(
            page, "Subscriptions", "https://shop.invalid/hook", "Pause", button="Pause"
        )
        await expect(page.get_by_role("status")).to_contain_text("Paused: notifications collect")
        await _with_keys(page, "Resume", button="Resume")
        await _says(page, "Resumed: what waits is sent now.")
        await _with_keys(page, "Notices 1 not seen", "Mark as seen", button="Mark as seen")
        await _says(page, "Notice 1 is marked as seen.")
    done = [
        (action["verb"], action["details"].get("why"))
        for action in (await console.api.pages("/v1/actions", scopes="ops"))[0]
    ]
    verbs = (
        "notice.seen",
        "subscription.resume",
        "subscription.pause",
        "release",
        "hold",
        "unmap_code",
        "map_code",
    )
    assert [(verb, why) for verb, why in done if verb in verbs] == [
        (verb, "a drill") for verb in verbs
    ]


async def _says(page: Page, sentence: str) -> None:
    """Check what was done; the page has no fault and fits the window."""
    await expect(page.get_by_role("status")).to_contain_text(sentence)
    assert await browser.faults(page) == []
    assert await browser.sideways(page) == 0


async def _with_keys(page: Page, *links: str, button: str, is_drastic: bool = False) -> None:
    """Follow the links and act without a mouse: once its dry run shows, the button has the focus,
    unless it is a drastic one.
    """
    for link in links:
        if not await page.get_by_role("link", name=link, exact=True).is_visible():
            await page.get_by_text("Menu ·").click()
        await page.get_by_role("link", name=link, exact=True).focus()
        await page.keyboard.press("Enter")
    await page.get_by_label("Why", exact=True).focus()
    await page.keyboard.type("a drill")
    await page.keyboard.press("Enter")
    sure = page.get_by_role("region", name="What it would do").get_by_role(
        "button", name=button, exact=True
    )
    if is_drastic:
        await expect(sure).not_to_be_focused()
        await sure.focus()
    await expect(sure).to_be_focused()
    await page.keyboard.press("Enter")

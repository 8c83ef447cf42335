"""A shipment's pages in a real browser: by keyboard, on a phone, in the dark, and without
scripts.
"""

import pytest
from playwright.async_api import Page, expect

from events.vocabulary import Kind, Status
from tests.acceptance.test_console import flaws_of, log_in
from tests.world import browser
from tests.world.api import Api, Statement
from tests.world.log_builder import LogBuilder

pytestmark = pytest.mark.usefixtures("own_processes")


async def _eventful(api: Api, scan: Statement) -> None:
    """Make a parcel with a late scan, a contradiction, a retraction, a
    notification, and 200 events.
    """
    story = LogBuilder(api.connection, api.keyring)
    await api.carriers.push(scan("1Z77", Status.PICKED_UP, description="Picked up"))
    await story.attempt()
    await story.seal()
    for batch in range(3):
        await api.carriers.push(
            *(scan("1Z77", Status.IN_TRANSIT, minutes=10 + 65 * batch + step) for step in range(65))
        )
        await story.seal()
    delivered = scan(
        "1Z77",
        Status.DELIVERED,
        minutes=300,
        native_id="n1",
        code="D1",
        signed_by="J. Doe",
        description="Left at the door",
    )
    await api.carriers.push(delivered)
    await api.carriers.push(scan("1Z77", Status.DELIVERED, minutes=300, native_id="n1", code="D2"))
    await story.seal()
    event_id = (await api.get("/v1/shipments/ups/1Z77/history", params={"limit": 200})).body[
        "items"
    ][-1]["event_id"]
    await api.carriers.push(
        scan("1Z77", None, minutes=310, kind=Kind.CORRECTION, corrects=event_id)
    )
    await api.carriers.push(
        scan("1Z77", Status.OUT_FOR_DELIVERY, minutes=290),
        scan("1Z77", None, minutes=500, code="ZZ", kind=Kind.UNMAPPED),
    )
    await story.observe()
    await story.seal()


async def _fine(page: Page, name: str, scheme: str) -> None:
    for device, size in (("phone", browser.PHONE), ("desktop", browser.DESKTOP)):
        await page.set_viewport_size(size)
        assert await browser.faults(page) == []
        assert await browser.sideways(page) == 0
        await browser.photograph(page, f"{name}-{scheme}-{device}")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.soak)])
async def test_a_parcel_is_found_and_read_from_its_number_alone(
    api: Api, scan: Statement, scheme: str
) -> None:
    await _eventful(api, scan)
    async with browser.page(scheme=scheme) as page:
        flaws = flaws_of(page)
        await log_in(
            page, str(api.client.make_url("")).rstrip("/"), await api.key("read audit pii")
        )
        await expect(page.get_by_role("heading", name="Shipments", exact=True)).to_be_visible()
        await _fine(page, "shipments", scheme)
        await page.keyboard.press("/")
        await page.keyboard.type("1z 77")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="UPS 1Z77")).to_be_visible()
        await expect(page.get_by_text("Not in time: stalled").first).to_be_visible()
        await expect(page.locator(".timeline li")).to_have_count(200)
        await _fine(page, "shipment", scheme)
        await page.get_by_role(
            "link", name="message and proof of event 1", exact=False
        ).last.click()
        await expect(page.get_by_text("it is in the log")).to_be_visible()
        await _fine(page, "event", scheme)
        await page.get_by_role("link", name="UPS 1Z77").click()
        await page.locator("#seen").focus()
        await page.keyboard.press("Home")
        await expect(page.get_by_text("What we knew on")).to_be_visible()
        await expect(page.locator(".timeline li")).to_have_count(1)
        await _fine(page, "shipment-then", scheme)
        await page.get_by_role("link", name="What we know now").click()
        await page.get_by_text("Show personal data").click()
        await page.get_by_label("Why").fill("dispute 12")
        await page.locator("#personal").get_by_role("button", name="Show").click()
        await expect(page.get_by_text("J. Doe").first).to_be_visible()
        await _fine(page, "shipment-personal", scheme)
        await page.get_by_role("link", name="Evidence for a case").click()
        await _fine(page, "evidence", scheme)
        await page.get_by_label("Number of the case").fill("dp_12")
        async with page.expect_download() as coming:
            await page.get_by_role("button", name="Make the file").click()
        download = await coming.value
        assert download.suggested_filename == "evidence-ups-1Z77.pdf"
        assert (await download.path()).read_bytes()[:5] == b"%PDF-"
        assert flaws == []

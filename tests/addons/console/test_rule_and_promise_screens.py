"""Expectations and promises on the console: shown, previewed, stated with a why; counted, listed,
taken along as a file.
"""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from playwright.async_api import expect

from events.vocabulary import Status
from tests.world import browser
from tests.world.console import ConsoleClient, words
from tests.world.log_builder import MORNING, LogBuilder, scan

RULES = "/console/expectations"
CHANGE = f"{RULES}/ups/services/ups%20ground%2Fhome/change"
PROMISES = "/console/promises?since=2026-01-01"


async def _say(
    console: ConsoleClient, number: str, service: str | None, *, days: int | None
) -> None:
    """Build a parcel promised for the second of March, delivered so many days after it; None: under
    way.
    """
    log = LogBuilder(console.api.connection, console.api.keyring)
    await log.append(
        scan(
            number,
            0,
            Status.IN_TRANSIT,
            native_id=f"{number}-1",
            estimated_delivery="2026-03-02",
            service=service,
        )
    )
    if days is not None:
        arrived = scan(number, 1, Status.DELIVERED, native_id=f"{number}-2", service=service)
        at = MORNING.replace(month=3, day=2, year=2026) + timedelta(days=days)
        await log.append(replace(arrived, time=replace(arrived.time, instant=at)))


async def test_rules_that_others_state_meanwhile_are_not_replaced(console: ConsoleClient) -> None:
    await console.log_in("ops", may_change="on")
    token = await console.form_token(CHANGE)
    await console.act(CHANGE, why="fast", overdue="3", **{"stalled.in_transit": "24"})
    await console.act(CHANGE, why="faster", overdue="3")
    assert "give whole hours" in await console.preview(CHANGE, why="x", overdue="soon")
    form = await (await console.get(CHANGE)).text()
    assert 'name="stalled.in_transit" type="text" value=""' in form, "inherited again"
    refused = await console.post(
        CHANGE, form_token=token, step="do", why="slow", overdue="4", replaces="0"
    )
    assert "preview them again" in words(await refused.text())
    await console.log_in("ops")
    assert "State hours" not in await console.text(RULES)
    assert (await console.get(CHANGE)).status == 403


async def test_promises_are_counted_listed_and_taken_along(console: ConsoleClient) -> None:
    await _say(console, "A/1", "UPS Ground", days=4)
    await _say(console, "A2", "UPS GROUND", days=-1)
    await _say(console, "A3", None, days=0)
    await console.log_in("read")
    page = await console.text(PROMISES)
    assert "50 % on time 50 % 2 1 1" in page
    assert 'href="/console/shipments/ups/A%2F1"' in await (await console.get(PROMISES)).text()
    for table, first in (
        ("groups", "carrier_id,service,lane,month"),
        ("late", "shipment_id,carrier_id,tracking_number,discriminator,service"),
    ):
        file = await console.get(f"/console/promises/export?since=2026-01-01&table={table}")
        assert file.headers["Content-Disposition"] == f'attachment; filename="promises-{table}.csv"'
        assert (await file.text()).startswith(first)
    await console.log_in("ops")
    assert (await console.get(PROMISES)).status == 403


@pytest.mark.usefixtures("own_processes")
async def test_both_are_used_in_a_browser_and_on_a_phone(console: ConsoleClient) -> None:
    for place in range(6):
        await _say(
            console,
            f"1Z{place}",
            ("UPS Ground", "UPS 2nd Day Air")[place % 2],
            days=(-1, 0, 1, 3, None, 0)[place],
        )
    async with browser.page() as page:
        await console.open(page, "ops read", RULES)
        await page.get_by_label("Carrier").select_option("ups")
        await page.get_by_label("Service").fill("UPS Ground")
        await page.get_by_role("button", name="State hours").click()
        await page.get_by_label("No scan: in transit").fill("24")
        await page.get_by_label("Why", exact=True).fill("a drill")
        await page.get_by_role("button", name="Show what it would do").click()
        assert await browser.faults(page) == []
        await browser.photograph(page, "expectations-form")
        await page.get_by_role("button", name="State it", exact=True).click()
        await expect(page.get_by_role("link", name="ups: ups ground")).to_be_visible()
        assert await browser.faults(page) == []
        await browser.photograph(page, "expectations")
        await page.set_viewport_size(browser.PHONE)
        assert await browser.sideways(page) == 0
        await browser.photograph(page, "expectations-phone")
        await page.get_by_text("Menu · Expectations").click()
        await page.get_by_role("link", name="Delivery promises", exact=True).click()
        await page.get_by_label("Promised from").fill(date(2026, 1, 1).isoformat())
        await page.get_by_role("button", name="Filter").click()
        await expect(page.get_by_role("region", name="Late parcels")).to_contain_text("1Z3")
        assert await browser.faults(page) == []
        assert await browser.sideways(page) == 0
        await browser.photograph(page, "promises-phone")
        await page.set_viewport_size(browser.DESKTOP)
        await browser.photograph(page, "promises")
        async with page.expect_download() as download:
            await page.get_by_role("link", name="csv").first.click()
        assert (await download.value).suggested_filename == "promises-groups.csv"

"""A real Chromium for the tests: Debian's, driven by Playwright."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page, async_playwright

from tests.world.programs import required


@asynccontextmanager
async def page() -> AsyncIterator[Page]:
    """An empty tab. Skips the test where there is no Chromium, fails it in CI."""
    program = required("chromium", "chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            yield await browser.new_page()
        finally:
            await browser.close()

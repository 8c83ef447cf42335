"""A real Chromium for the tests: Debian's, driven by Playwright."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, async_playwright


@asynccontextmanager
async def page() -> AsyncIterator[Page]:
    """An empty tab. Skips the test where there is no Chromium, fails it in CI."""
    program = shutil.which("chromium")
    if program is None:
        reason = "chromium is not installed (Debian package chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            yield await browser.new_page()
        finally:
            await browser.close()

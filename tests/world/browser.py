"""A real Chromium for the tests: Debian's, driven by Playwright; and axe-core, which finds what
people with other senses stumble over.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Page, ViewportSize, async_playwright, expect

from tests.world.programs import required

PHONE: Final = ViewportSize(width=390, height=844)
DESKTOP: Final = ViewportSize(width=1280, height=800)
EXPECT_MILLISECONDS: Final = 30_000
"""Time that a page may take to show what is expected: a loaded machine is no fault."""
_AXE: Final = Path(__file__).parents[1] / "node" / "node_modules" / "axe-core" / "axe.min.js"
_SERIOUS: Final = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
    .filter(found => ["serious", "critical"].includes(found.impact))
    .map(found => `${found.id}: ${found.nodes.map(node => node.html).slice(0, 3).join(" | ")}`)"""


@asynccontextmanager
async def page(*, scheme: str = "light") -> AsyncIterator[Page]:
    """Open an empty tab. Skips the test where there is no Chromium, fails it in CI."""
    program = required("chromium", "chromium")
    expect.set_options(timeout=EXPECT_MILLISECONDS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            context = await browser.new_context(
                color_scheme="dark" if scheme == "dark" else "light", viewport=DESKTOP
            )
            yield await context.new_page()
        finally:
            await browser.close()


async def faults(tab: Page) -> list[str]:
    """Return what axe-core calls serious or critical on the page."""
    if not _AXE.exists():
        reason = "axe-core is not installed (npm ci --prefix tests/node)"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    await tab.evaluate(_AXE.read_text("utf-8"))
    found: list[str] = await tab.evaluate(_SERIOUS)
    return found


async def sideways(tab: Page) -> int:
    """Return by how many pixels the page is wider than the window."""
    wider: int = await tab.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return wider


async def photograph(tab: Page, name: str) -> None:
    """Store the whole page as a picture, where STATESVC_TEST_PICTURES names a folder:
    for people to look at.
    """
    if folder := os.environ.get("STATESVC_TEST_PICTURES"):
        await tab.screenshot(path=Path(folder) / f"{name}.png", full_page=True)

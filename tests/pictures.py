"""The pictures of the pages, taken of a running demo: `make pictures` takes all of them anew.

Needs Chromium and poppler's `pdftoppm`.
"""

import asyncio
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from playwright.async_api import Page

from tests.journeys.installation import Installation, answered, installation, main, until
from tests.world import browser
from tests.world.programs import required

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
BYTES_MAX: Final = 200_000
EVIDENCE: Final = "/v1/shipments/{carrier_id}/{tracking_number}/evidence"
_DEMO: Final = ("--demo", "--demo-rate", "40")
_SHIPMENTS_MIN: Final = 150
"""Before a picture is taken."""
_PDF_DPI: Final = 90


@dataclass(frozen=True, slots=True)
class Picture:
    """A file in `FOLDER` and the path of the page or document that it shows; `height` of
    the window, in pixels.
    """

    name: str
    path: str
    height: int = 800


PICTURES: Final = (
    Picture("shipment.png", "/console/shipments/{carrier_id}/{tracking_number}", 1000),
    Picture("evidence.png", EVIDENCE),
    Picture("overview.png", "/console", 1000),
    Picture("shipments.png", "/console/shipments"),
    Picture("carriers.png", "/console/carriers"),
    Picture("subscription.png", "/console/subscriptions/{subscription_id}", 1000),
    Picture("dead-letters.png", "/console/dead-letters"),
)


def shown(reader: httpx.Client) -> dict[str, str]:
    """Return what stands in the paths: a parcel of UPS's with a long history that was delivered,
    and the subscription that is quick.
    """
    query = {"carrier_id": "ups", "status": "delivered", "limit": "100"}
    delivered = answered(reader.get("/v1/shipments", params=query))["items"]
    parcel: dict[str, Any] = max(
        delivered, key=lambda shipment: (shipment["version"], shipment["tracking_number"])
    )
    subscriptions = answered(reader.get("/v1/subscriptions"))["items"]
    quick = next(each for each in subscriptions if not each["url"].endswith("/slow"))
    return {
        "carrier_id": parcel["carrier_id"],
        "tracking_number": parcel["tracking_number"],
        "subscription_id": quick["id"],
    }


def is_busy(reader: httpx.Client) -> bool:
    """Return whether the demo has pushed enough for lists and charts to show something."""
    found = answered(
        reader.get(
            "/v1/shipments", params={"carrier_id": "ups", "status": "delivered", "limit": "100"}
        )
    )["items"]
    total = answered(reader.get("/v1/shipments", params={"limit": str(_SHIPMENTS_MIN)}))["items"]
    return len(found) > 10 and len(total) >= _SHIPMENTS_MIN


async def photograph(service: Installation, key: str, names: dict[str, str]) -> None:
    """Take the pictures of the console."""
    async with browser.page() as tab:
        await tab.goto(f"{service.url}/console")
        await tab.get_by_label("API key").fill(key)
        await tab.get_by_role("button", name="Log in").click()
        for picture in PICTURES:
            if picture.path != EVIDENCE:
                await _photograph_page(tab, service.url, picture, names)


async def _photograph_page(tab: Page, url: str, picture: Picture, names: dict[str, str]) -> None:
    await tab.set_viewport_size({"width": browser.DESKTOP["width"], "height": picture.height})
    answer = await tab.goto(url + picture.path.format(**names))
    if answer is None or not answer.ok:
        raise RuntimeError(f"{picture.path} is not shown: {answer and answer.status}")
    await tab.screenshot(path=FOLDER / picture.name)


def render_evidence(
    reader: httpx.Client, picture: Picture, names: dict[str, str], folder: Path
) -> None:
    """Make a picture of page 1."""
    document = folder / "evidence.pdf"

    def is_made() -> bool:
        # a busy machine may have no room for the document yet
        answer = reader.get(picture.path.format(**names), headers={"Accept": "application/pdf"})
        document.write_bytes(answer.content)
        return answer.is_success

    until(is_made, "the evidence")
    file = FOLDER / picture.name
    program = required("pdftoppm", "poppler-utils")
    command = [
        program,
        "-png",
        "-singlefile",
        "-r",
        str(_PDF_DPI),
        "-f",
        "1",
        str(document),
        str(file.with_suffix("")),
    ]
    subprocess.run(command, check=True, timeout=60)


def take() -> dict[str, object]:
    """All pictures, from an empty folder on; answers their sizes in bytes."""
    FOLDER.mkdir(exist_ok=True)
    with installation("pictures", *_DEMO) as service:
        key = service.key("pictures", "admin")
        with httpx.Client(
            base_url=service.url, headers={"Authorization": f"Bearer {key}"}, timeout=60
        ) as reader:
            until(lambda: is_busy(reader), "a busy demo")
            names = shown(reader)
            asyncio.run(photograph(service, key, names))
            for picture in PICTURES:
                if picture.path == EVIDENCE:
                    render_evidence(reader, picture, names, service.home)
    return {picture.name: (FOLDER / picture.name).stat().st_size for picture in PICTURES}


if __name__ == "__main__":
    sys.exit(main(take))

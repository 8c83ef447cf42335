"""The dispute agent's journey: `python -m tests.journeys.agent`.

All that the agent has is a number and a key. In a real browser: finds the parcel, sees what was
known before it was delivered, makes a PDF as of then and a zip of today, and has the zip
checked by its own verifier, with a bare Python and no network. Prints what was measured; exit
code 1: a step failed.
"""

import asyncio
import base64
import functools
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from playwright.async_api import Page, expect
from pypdf import PdfReader

from tests.acceptance.stories import ups_alert
from tests.journeys.installation import Installation, answered, installation, main, require, until
from tests.world import browser

NUMBER: Final = "1Z999AA10123456784"
AS_PRINTED: Final = "1z 999 aa1 01 2345 6784"
SIGNER: Final = "R. Recipient"
_TIMING: Final = (
    "() => { const page = performance.getEntriesByType('navigation')[0]; return page.responseEnd -"
    " page.requestStart }"
)


def push(service: Installation) -> None:
    """Push three days of a parcel; what came by the second is sealed before the third comes."""
    carrier, reader = service.caller("carrier", "ingest"), service.caller("watcher", "read")
    days = [
        ups_alert(NUMBER, "P/PU", day=1, minute=600, text="Picked up"),
        ups_alert(NUMBER, "I/AR", day=2, minute=400, text="Arrived"),
        ups_alert(
            NUMBER, "D/FS", day=3, minute=700, text="Delivered at the front door", signer=SIGNER
        ),
    ]
    for day, said in enumerate(days, start=1):
        answered(
            carrier.post(
                "/v1/webhooks/ups", content=said.body, headers={"Content-Type": "application/json"}
            )
        )

        def is_sealed(seen: int = day) -> bool:
            found = reader.get(f"/v1/shipments/ups/{NUMBER}/history").json().get("items", [])
            return len({event["occurred_at"][:10] for event in found if event["sealed_at"]}) == seen

        until(is_sealed, f"what came on day {day}, sealed")


async def read(page: Page, url: str, key: str, folder: Path) -> dict[str, object]:
    """Use the page from the login to two files in the folder."""
    await page.goto(f"{url}/console")
    await page.get_by_label("API key").fill(key)
    await page.get_by_role("button", name="Log in").click()
    await page.get_by_label("Find a parcel").fill(AS_PRINTED)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name=f"UPS {NUMBER}")).to_be_visible()
    await expect(page.locator(".state")).to_have_text("Delivered")
    page_ms: float = await page.evaluate(_TIMING)
    require(SIGNER not in await page.content(), "the signer is shown though nobody asked for it")
    await page.locator("#seen").focus()
    await page.keyboard.press("ArrowLeft")
    await expect(page.get_by_text("What we knew on")).to_be_visible()
    await expect(page.locator(".state")).to_have_text("In transit")
    await _evidence(page, folder / "then.pdf", "PDF, to be read")
    await page.get_by_role("link", name="Back to the shipment").click()
    await page.get_by_role("link", name="What we know now").click()
    await expect(page.locator(".state")).to_have_text("Delivered")
    await _evidence(page, folder / "today.zip", "Zip")
    return {"page_ms": round(page_ms)}


async def _evidence(page: Page, file: Path, form: str) -> None:
    await page.get_by_role("link", name="Evidence for a case").click()
    await page.get_by_role("link", name="Visa 13.1").click()
    await expect(page.get_by_label("reason code")).to_have_value("13.1")
    await page.get_by_label(form).check()
    await page.get_by_label("Number of the case").fill("dp_1NsHZ2")
    await page.get_by_label("City").fill("Salem")
    await page.get_by_label("Country").fill("US")
    async with page.expect_download(timeout=120_000) as coming:
        await page.get_by_role("button", name="Make the file").click(timeout=120_000)
    await (await coming.value).save_as(file)


def check_pdf(file: Path) -> dict[str, object]:
    """Check that it says what was known then, and nothing of the delivery."""
    pages = [page.extract_text() for page in PdfReader(file).pages]
    text = " ".join(" ".join(pages).split())
    require("What was known on" in text, f"the PDF does not say as of when it is: {text[:500]}")
    require("Case dp_1NsHZ2 · reason code 13.1" in pages[0], "page 1 does not begin with the case")
    require(SIGNER not in text, "the PDF knows who signed before anyone had")
    return {"pdf_pages": len(pages), "pdf_bytes": file.stat().st_size}


def check_zip(file: Path, key: str) -> dict[str, object]:
    """Check that its verifier says that it holds, and no longer once a word is another one, or
    with another log's key.
    """
    folder = file.with_suffix("")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
        names = sorted(archive.namelist())
    evidence = folder / "evidence.json"
    content = evidence.read_bytes()
    require(
        json.loads(content)["shipment"]["signed_by"] == SIGNER,
        "the evidence does not name the signer",
    )
    _verify(folder, key, expected=0)
    _verify(folder, _another_key(key.partition("+")[0]), expected=1)
    evidence.write_bytes(content.replace(SIGNER.encode(), b"S. Omebodys", 1))
    require(evidence.read_bytes() != content, "nothing was altered")
    _verify(folder, key, expected=1)
    return {"zip": names, "zip_bytes": file.stat().st_size, "cut_off": bool(_cut_off())}


def _verify(folder: Path, key: str, *, expected: int) -> None:
    """Verify with no package, no variable of this environment, and no network."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    command = [*_cut_off(), python, "-I", "-S", "verify_evidence.py", ".", "--key", key]
    ended = subprocess.run(
        command, cwd=folder, env={}, capture_output=True, text=True, timeout=60, check=False
    )
    require(
        ended.returncode == expected,
        f"the verifier ended with {ended.returncode}, not {expected}: {ended.stdout}{ended.stderr}",
    )


@functools.cache
def _cut_off() -> Sequence[str]:
    """Return what runs a command in a network of its own with nothing in it; nothing where
    the machine forbids that.
    """
    unshare = ["/usr/bin/unshare", "--map-root-user", "--net"]
    is_allowed = (
        subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode == 0
    )
    return unshare if is_allowed else []


def _another_key(name: str) -> str:
    """Generate a key that this log never had, under its name (C2SP signed-note)."""
    material = b"\x01" + Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    number = hashlib.sha256(name.encode() + b"\n" + material).digest()[:4].hex()
    return f"{name}+{number}+{base64.b64encode(material).decode()}"


async def travel(service: Installation) -> dict[str, object]:
    push(service)
    agent = service.key("agent", "read", "audit", "pii")
    key = answered(service.caller("auditor", "read").get("/v1/checkpoint/keys"))["items"][0]["key"]
    async with browser.page() as page:
        measured = await read(page, service.url, agent, service.home)
    from_the_command_line(service, agent, key)
    return {
        **measured,
        **check_pdf(service.home / "then.pdf"),
        **check_zip(service.home / "today.zip", key),
    }


def from_the_command_line(service: Installation, agent: str, key: str) -> None:
    """Do the same with an address and the key alone; a hold takes a scope that the agent does not
    have.
    """
    require(
        "in_transit" in service.command(agent, "shipments", "history", "ups", NUMBER),
        "the history does not say where it was",
    )
    require(
        NUMBER in service.command(agent, "shipments", "find", NUMBER[-5:]),
        "the last five characters do not find it",
    )
    said = service.command(agent, "evidence", "ups", NUMBER)
    require(
        f"UPS reported parcel {NUMBER} as delivered on 3 " in said,
        f"the command does not say what page 1 says: {said}",
    )
    check_zip(service.home / "desk" / f"evidence-ups-{NUMBER}.zip", key)
    refused = service.command(
        agent, "legal-hold", "place", "ups", NUMBER, "--why", "case 7", exit_code=1
    )
    require("takes a key with scope `admin`" in refused, f"the refusal says otherwise: {refused}")


def journey() -> dict[str, object]:
    """Run the journey, and return what was measured."""
    with installation("agent") as service:
        return asyncio.run(travel(service))


if __name__ == "__main__":
    sys.exit(main(journey))

"""The subscriber's journey, as `docs/subscribers.md` has it: `python -m tests.journeys.subscriber`.

The subscriber has the Python client in an empty environment. It subscribes, verifies with the
client, with the libraries of the page and with its own lines, is killed and comes back, replays,
rotates its secret, compares what it was told, has one sent again, follows the stream in a browser
by the page's own script, and uses the portal. Prints what was measured; exit code 1: a step failed.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import standardwebhooks
import svix
from playwright.async_api import Page, expect

from tests.journeys.client_environment import client_environment, run
from tests.journeys.installation import (
    ROOT,
    Installation,
    answered,
    installation,
    main,
    require,
    scan,
    until,
)
from tests.world import browser
from tests.world.ports import free_port

GUIDE: Final = (ROOT / "docs" / "subscribers.md").read_text("utf-8")
SHOWING: Final = """<!doctype html><title>journey</title><ol></ol><script>
function show (change) {
  const item = document.createElement("li")
  item.textContent = JSON.stringify(change)
  document.querySelector("ol").append(item)
}
</script>"""
PROGRAMS: Final = Path(__file__).parent
Verify = Callable[[str, Mapping[str, str], bytes], Any]


@dataclass(frozen=True, slots=True)
class Received:
    """One POST, as it came."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def to(self) -> str:
        status: str = json.loads(self.body)["data"]["to"]
        return status


class Subscriber:
    """The subscriber's machine: the client's programs, with an address and a key;
    the server can be killed.
    """

    def __init__(self, service: Installation, key: str) -> None:
        self.key = key
        self._python = client_environment(service.home)
        self._environment = {"URL": service.url, "KEY": key}
        self._file = service.home / "received.ndjson"
        self._secrets = service.home / "secrets.json"
        self._page = service.home / "page.html"
        self._page.write_text(_page(service.url), "utf-8")
        self._home = service.home
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def step(self, name: str, *arguments: str) -> Any:
        """Take a step of `subscriber_program.py`, and return what it came to."""
        printed = run(
            [self._python, PROGRAMS / "subscriber_program.py", name, *arguments],
            environment=self._environment,
            folder=self._home,
        )
        return json.loads(printed)

    def start(self) -> None:
        command: list[str | Path] = [
            self._python,
            PROGRAMS / "receiver.py",
            str(self._port),
            self._file,
            self._secrets,
            self._page,
        ]
        self._process = subprocess.Popen(
            command, cwd=self._home, env=os.environ | self._environment
        )
        until(self._answers, "the receiver")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def trust(self, *secrets: str) -> None:
        """Let the receiver take what one of these has signed."""
        self._secrets.write_text(json.dumps(secrets), "utf-8")

    def received(self, count: int) -> list[Received]:
        """Return all of them, once there are that many."""
        until(lambda: len(self._lines()) >= count, f"{count} notifications")
        lines = [json.loads(line) for line in self._lines()]
        return [Received(line["headers"], base64.b64decode(line["body"])) for line in lines]

    def _lines(self) -> list[str]:
        return self._file.read_text("utf-8").splitlines() if self._file.exists() else []

    def _answers(self) -> bool:
        require(self._process is not None and self._process.poll() is None, "the receiver ended")
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(self.url).status_code == httpx.codes.OK
        return False


def _page(url: str) -> str:
    """Return the guide's script on a page that shows what it is given."""
    found = re.search(r"^```html\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    require(found, "the guide has no script for a page")
    script = found[1].replace("https://statesvc.example.com", url) if found else ""
    return f"{SHOWING}{script}"


def _of_the_guide() -> Verify:
    found = re.search(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    require(found, "the guide has no verifier in Python")
    module: dict[str, Any] = {}
    exec(found[1] if found else "", module)  # noqa: S102 - the guide's own lines
    verified: Verify = module["verified"]
    return verified


VERIFIERS: Final[Mapping[str, Verify]] = {
    "standardwebhooks": lambda secret, headers, body: standardwebhooks.Webhook(secret).verify(
        body, dict(headers)
    ),
    "svix": lambda secret, headers, body: svix.Webhook(secret).verify(body, dict(headers)),
    "guide": _of_the_guide(),
}


def verified(secret: str, notification: Received) -> None:
    """Verify by each verifier, which also refuses it with one byte changed."""
    for name, verify in VERIFIERS.items():
        require(
            accepts(verify, secret, notification, notification.body),
            f"{name} refuses a notification",
        )
        require(
            not accepts(verify, secret, notification, notification.body + b" "),
            f"{name} takes an altered body",
        )


def accepts(verify: Verify, secret: str, notification: Received, body: bytes) -> bool:
    with contextlib.suppress(Exception):
        verify(secret, notification.headers, body)
        return True
    return False


def travel() -> dict[str, object]:
    with installation("subscriber") as service:
        carrier = service.caller("carrier", "ingest")
        subscriber = Subscriber(service, service.key("shop", "subscriptions", "read"))
        try:
            return _travel(service, carrier, subscriber)
        finally:
            subscriber.kill()


def _travel(
    service: Installation, carrier: httpx.Client, subscriber: Subscriber
) -> dict[str, object]:
    subscriber.start()
    since = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    subscription = subscriber.step("subscribe", f"{subscriber.url}/hook")
    subscription_id, secret = subscription["id"], subscription["secret"]
    subscriber.trust(secret)
    measured: dict[str, object] = {}

    said(carrier, "picked_up", day=1)
    began = time.monotonic()
    (first,) = subscriber.received(1)
    verified(secret, first)
    measured["event_to_verified_seconds"] = round(time.monotonic() - began, 2)
    signature = {
        name: value for name, value in first.headers.items() if name.startswith("webhook-")
    }
    altered = httpx.post(f"{subscriber.url}/hook", headers=signature, content=first.body + b" ")
    require(altered.status_code == httpx.codes.UNAUTHORIZED, "the client takes an altered body")

    subscriber.kill()
    said(carrier, "in_transit", day=2)
    said(carrier, "out_for_delivery", day=3)
    until(lambda: subscriber.step("failures", subscription_id) > 0, "a failed attempt")
    killed = time.monotonic()
    subscriber.start()
    notifications = subscriber.received(3)
    measured["recovered_to_caught_up_seconds"] = round(time.monotonic() - killed, 1)
    require(
        [each.to for each in notifications] == ["picked_up", "in_transit", "out_for_delivery"],
        "out of order, or repeated",
    )

    require(
        subscriber.step("replay", subscription_id, since, "dry_run") == 3,
        "the dry run counts otherwise",
    )
    require(len(subscriber.received(3)) == 3, "a dry run sends nothing")
    require(subscriber.step("replay", subscription_id, since) == 3, "the replay counts otherwise")
    replayed = subscriber.received(6)
    require(
        [each.id for each in replayed[3:]] == [each.id for each in replayed[:3]],
        "a replay has ids of its own",
    )
    require(
        [each.body for each in replayed[3:]] == [each.body for each in replayed[:3]],
        "a replay says something else",
    )

    rotated = subscriber.step("rotate", subscription_id)
    said(carrier, "delivery_attempted", day=4)
    notification = subscriber.received(7)[6]
    for each in (secret, rotated):
        verified(each, notification)
    measured["verified_by"] = ["statesvc_client", *VERIFIERS]
    subscriber.trust(rotated)
    _looks_back(subscriber, subscription_id)

    _from_the_command_line(service, subscriber, subscription_id)
    portal = subscriber.step("open_portal")
    return measured | asyncio.run(
        _in_a_browser(service, carrier, subscriber, portal, subscription_id)
    )


def _looks_back(subscriber: Subscriber, subscription_id: str) -> None:
    """Compare what the service says that it told with what came, and have one sent again under its
    id.
    """
    received = subscriber.received(7)
    until(
        lambda: len(subscriber.step("told", subscription_id)) == 4,
        "four notifications that were delivered",
    )
    told = {each["id"]: each for each in subscriber.step("told", subscription_id)}
    require(
        told.keys() == {each.id for each in received},
        "the service lists other notifications than came",
    )
    require(
        all(told[each.id]["body"].encode() == each.body for each in received),
        "a body is shown otherwise than it was sent",
    )
    require(
        told[received[1].id]["tries"] > told[received[6].id]["tries"],
        "the attempts that failed are not listed",
    )
    require(
        subscriber.step("resend", subscription_id, received[1].id) == received[1].id,
        "another one is sent again",
    )
    resent = subscriber.received(8)[7]
    require(
        (resent.id, resent.body) == (received[1].id, received[1].body),
        "what is sent again is another one",
    )


def _from_the_command_line(
    service: Installation, subscriber: Subscriber, subscription_id: str
) -> None:
    """Use an address and the shop's key alone; other work takes a scope that it does not have."""
    key = subscriber.key
    require(
        subscriber.url in service.command(key, "subscriptions", "list"),
        "the list lacks the subscription",
    )
    service.command(key, "subscriptions", "pause", subscription_id)
    service.command(key, "subscriptions", "resume", subscription_id)
    service.command(key, "subscriptions", "test", subscription_id)
    refused = service.command(key, "dead-letters", "list", exit_code=1)
    require("takes a key with scope `ops`" in refused, f"the refusal says otherwise: {refused}")


def said(carrier: httpx.Client, status: str, *, day: int) -> None:
    answered(carrier.post("/v1/events", json=scan("1ZJOURNEY0000000001", status, day=day)), 201)


async def _in_a_browser(
    service: Installation,
    carrier: httpx.Client,
    subscriber: Subscriber,
    portal: str,
    subscription_id: str,
) -> dict[str, object]:
    async with browser.page() as page:
        # the stream begins where it is opened: what is said before the browser is there does not
        # come
        async with page.expect_response(lambda answer: "/v1/stream?" in answer.url, timeout=60_000):
            await page.goto(f"{subscriber.url}/page")
        began = time.monotonic()
        said(carrier, "delivered", day=5)
        await expect(page.locator("li")).to_contain_text('"to":"delivered"', timeout=60_000)
        measured: dict[str, object] = {
            "event_to_browser_seconds": round(time.monotonic() - began, 2)
        }
        await page.goto(service.url + portal)
        await _looked_at(page, "portal")
        await (
            page.get_by_role("link", name=subscription_id)
            .or_(page.locator(f'a[href*="{subscription_id}"]'))
            .first.click()
        )
        await _looked_at(page, "portal-subscription")
        return measured


async def _looked_at(page: Page, name: str) -> None:
    """Examine it by axe, and its width, at the desk and on a phone."""
    for size_name, size in (("desktop", browser.DESKTOP), ("phone", browser.PHONE)):
        await page.set_viewport_size(size)
        faults = await browser.faults(page)
        require(not faults, f"{name}: {faults}")
        require(await browser.sideways(page) == 0, f"{name} is wider than a {size_name}")
        await browser.photograph(page, f"{name}-{size_name}")
    await page.set_viewport_size(browser.DESKTOP)


if __name__ == "__main__":
    sys.exit(main(travel))

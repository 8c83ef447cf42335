"""The console in a real browser, on real processes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from playwright.async_api import Page, expect
from psycopg import AsyncConnection

from statesvc.http.key_store import Scope, create_key
from tests.acceptance.processes import BOOTSTRAP_KEY, Service, free_port, until_false
from tests.acceptance.stories import ups_alert
from tests.world import browser

ServiceMaker = Callable[..., Any]
NOBODY = "http://127.0.0.1:{port}/told"


async def _give(page: Page, key: str) -> None:
    await page.get_by_label("API key").fill(key)
    await page.get_by_role("button", name="Show").click()


async def test_the_console_shows_how_each_receiver_fares_and_what_waits(service_maker: ServiceMaker, tmp_path: Path) -> None:
    service: Service = await service_maker(tmp_path, {"STATESVC_SUBSCRIBER_ALLOW": "127.0.0.0/8"})
    url = NOBODY.format(port=free_port())
    async with service, browser.page() as page:
        flaws: list[str] = []
        page.on("console", lambda told: flaws.append(told.text) if told.type == "error" else None)
        page.on("pageerror", lambda error: flaws.append(str(error)))
        await service.start("api", "worker", "notifier")
        status, made = await service.post("/v1/subscriptions", orjson.dumps({"url": url}))
        assert status == 201
        assert (await service.webhook("ups", ups_alert("1ZCONSOLE0000000001", "I/OT", day=3, minute=300).body))[0] == 200

        async def fares_well() -> bool:
            return (await service.get(f"/v1/subscriptions/{made['id']}"))[1]["failing"] is None

        await until_false(fares_well)
        await page.goto(f"{service.api.url}/console")
        await _give(page, BOOTSTRAP_KEY)
        receiver = page.locator("#subscriptions tbody tr")
        await expect(receiver).to_contain_text(url)
        await expect(receiver).to_contain_text("last unreachable")
        await expect(receiver.locator("td").nth(1)).to_have_text("active")
        shown = (await service.get(f"/v1/subscriptions/{made['id']}"))[1]["limiter"]
        await expect(receiver.locator("td").nth(5)).to_have_text(shown["breaker"], timeout=20_000)
        await expect(page.locator("#queue tbody tr", has_text="notifications").locator("td").nth(3)).to_have_text("1")
        await expect(page.locator("#workers tbody")).to_contain_text("notifier")
        await expect(page.locator("#dead-letters")).to_contain_text("None.")
        assert flaws == []


async def test_the_console_says_what_a_key_lacks_and_keeps_none_that_is_wrong(service_maker: ServiceMaker, tmp_path: Path) -> None:
    service: Service = await service_maker(tmp_path)
    async with service, browser.page() as page:
        await service.start("api")
        await page.goto(f"{service.api.url}/console")
        await _give(page, "wrong")
        await expect(page.get_by_role("status")).to_have_text("This key is not valid.")
        await expect(page.locator("#board")).to_be_hidden()
        assert await page.evaluate("sessionStorage.length") == 0
        async with await AsyncConnection.connect(service.service_dsn, autocommit=True) as connection:
            _, key = await create_key(connection, name="on call", scopes=[Scope.OPS], created_by="test")
        await _give(page, key)
        await expect(page.locator("#subscriptions")).to_contain_text("subscriptions")
        await expect(page.locator("#queue tbody")).to_contain_text("notifications")
        await page.get_by_role("button", name="Forget the key").click()
        await expect(page.locator("#board")).to_be_hidden()
        assert await page.evaluate("sessionStorage.length") == 0
        assert await page.locator("table").count() == 0


async def test_the_console_runs_no_script_but_its_own(service_maker: ServiceMaker, tmp_path: Path) -> None:
    service: Service = await service_maker(tmp_path)
    async with service, browser.page() as page:
        await service.start("api")
        answer = await page.goto(f"{service.api.url}/console")
        assert answer is not None
        assert "unsafe" not in (await answer.all_headers())["content-security-policy"]
        foreign = "const s = document.createElement('script'); s.textContent = 'window.ran = true'; document.body.append(s)"
        assert await page.evaluate(f"() => {{ {foreign}; return window.ran; }}") is None


async def test_a_code_is_mapped_on_the_console(service_maker: ServiceMaker, tmp_path: Path) -> None:
    service: Service = await service_maker(tmp_path)
    async with service, browser.page() as page:
        flaws: list[str] = []
        page.on("console", lambda told: flaws.append(told.text) if told.type == "error" else None)
        page.on("pageerror", lambda error: flaws.append(str(error)))
        await service.start("api", "worker")
        event = {"eventCode": "EVZZ9", "eventName": "Left with Zaphod", "eventDateTime": "2026-03-02T10:04:00+00:00"}
        body = orjson.dumps({"mailPieces": {"mailPieceId": "AB1GB", "events": [event]}})
        assert (await service.webhook("royalmail", body))[0] == 200
        await service.drained()
        await page.goto(f"{service.api.url}/console")
        await _give(page, BOOTSTRAP_KEY)
        unknown = page.locator("#unmapped-codes tbody tr")
        await expect(unknown).to_contain_text("EVZZ9")
        await unknown.get_by_role("button", name="Map").click()
        samples = page.locator("#samples tbody tr")
        await expect(samples).to_contain_text("AB1GB")
        await expect(samples).not_to_contain_text("Zaphod")
        await page.get_by_role("button", name="Show their texts").click()
        await expect(samples).to_contain_text("Left with Zaphod")
        await expect(page.get_by_role("button", name="Map it")).to_be_disabled()
        await page.get_by_label("Means").select_option("delivery_attempted")
        await page.get_by_label("Why").fill("their letter")
        await page.get_by_role("button", name="Preview").click()
        await expect(page.locator("#outcome")).to_contain_text("1 shipments would change their status")
        assert await service.value("SELECT count(*) FROM statesvc.code_mapping") == 0
        await page.get_by_role("button", name="Map it").click()
        await expect(page.locator("#mappings tbody tr")).to_contain_text("delivery_attempted")
        await page.get_by_role("button", name="Read its history again").click()
        await expect(page.locator("#outcome")).to_contain_text("1 events corrected, 1 changes of status")
        await expect(page.locator("#unmapped-codes")).to_contain_text("Every code that was pushed is mapped.")
        assert (await service.get("/v1/shipments/royalmail/AB1GB"))[1]["status"] == "delivery_attempted"
        await page.get_by_role("button", name="Close").click()
        await page.get_by_label("Carrier", exact=True).fill("royalmail")
        await page.get_by_role("button", name="Map any code of it").click()
        await page.get_by_role("button", name="Take back").click()
        await expect(page.locator("#outcome")).to_contain_text("1 shipments would change their status")
        await page.get_by_label("Why").fill("it was wrong")
        await page.get_by_role("button", name="Map it").click()
        await expect(page.locator("#mappings")).to_contain_text("None.")
        await page.get_by_role("button", name="Forget the key").click()
        assert await page.locator("table").count() == 0
        assert flaws == []

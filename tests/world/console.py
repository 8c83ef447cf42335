"""A browser without a browser, on the console of the served API."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from html import unescape
from typing import Any

import pytest
from aiohttp import ClientResponse, CookieJar
from aiohttp.test_utils import TestClient
from playwright.async_api import Page

from tests.world.api import Api

LOGIN = "/console/login"


@dataclass
class ConsoleClient:
    """Cookies, forms, no redirects by itself."""

    api: Api
    client: TestClient[Any, Any]

    async def get(self, path: str, **headers: str) -> ClientResponse:
        return await self.client.get(path, allow_redirects=False, headers=headers)

    async def post(self, path: str, **fields: str) -> ClientResponse:
        return await self.client.post(path, data=fields, allow_redirects=False)

    async def form_token(self, path: str = LOGIN) -> str:
        found = re.search(
            r'name="form_token" value="([0-9a-f]{64})"', await (await self.get(path)).text()
        )
        assert found is not None
        return found[1]

    async def text(self, path: str) -> str:
        """Return what a page says, without its tags."""
        response = await self.get(path)
        text = await response.text()
        assert response.status == 200, text
        return words(text)

    async def preview(self, path: str, **fields: str) -> str:
        """Return what an action would do."""
        return words(
            await (await self.post(path, form_token=await self.form_token(path), **fields)).text()
        )

    async def act(self, path: str, **fields: str) -> str:
        """Do it after its dry run; return what the next page says."""
        token = await self.form_token(path)
        shown = await (await self.post(path, form_token=token, **fields)).text()
        forms = re.findall(r"<form.*?</form>", shown, re.DOTALL)
        confirmed = next((form for form in forms if 'name="step" value="do"' in form), None)
        assert confirmed is not None, words(shown)
        hidden = {
            unescape(name): unescape(value)
            for name, value in re.findall(
                r'type="hidden" name="([^"]*)" value="([^"]*)"', confirmed
            )
        }
        done = await self.post(path, **hidden)
        if done.status == 303:
            done = await self.get(done.headers["Location"])
        return words(await done.text())

    async def log_in(self, scopes: str, **fields: str) -> ClientResponse:
        return await self.post(
            LOGIN, form_token=await self.form_token(), key=await self.api.key(scopes), **fields
        )

    async def open(self, page: Page, scopes: str, path: str = "/console") -> None:
        """Log a real browser in at the path, with changes allowed."""
        await page.goto(str(self.client.make_url(path)))
        await page.get_by_label("API key").fill(await self.api.key(scopes))
        await page.get_by_label("Allow changes").check()
        await page.get_by_role("button", name="Log in").click()


@pytest.fixture
async def console(api: Api) -> AsyncIterator[ConsoleClient]:
    client: TestClient[Any, Any] = TestClient(api.client.server, cookie_jar=CookieJar(unsafe=True))
    yield ConsoleClient(api, client)
    await client.session.close()


def words(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())

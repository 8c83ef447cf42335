"""What the overview of the console says is wrong, read as a person on call has it open: logged in
before anything broke.
"""

import asyncio
import re
from collections.abc import Mapping
from html import unescape
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from tests.acceptance.processes import START_SECONDS
from tests.world.console import words

_ALARM: Final = re.compile(
    r'<li class="trouble alarm (\w+)">(.*?)(?=<li class="trouble alarm |</ul>\s*<div'
    r' class="title">)',
    re.DOTALL,
)
_FINDING: Final = re.compile(r"<b>(.*?)</b>: (.*?)</(?:p|li)>", re.DOTALL)
_PAGE: Final = re.compile(r'href="/console/runbook/(\w+)"')


class OverviewReader:
    """One session of the console at `url`."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._key = key
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.CookieJar(unsafe=True), timeout=aiohttp.ClientTimeout(total=30)
        )
        fields = {"form_token": await self._form_token(self._session), "key": self._key}
        async with self._session.post(
            f"{self._url}/console/login", data=fields, allow_redirects=False
        ) as answer:
            assert answer.status == 303, await answer.text()
        return self

    async def _form_token(self, session: aiohttp.ClientSession) -> str:
        """Return it once the service answers."""
        async with asyncio.timeout(START_SECONDS):
            while True:
                try:
                    async with session.get(f"{self._url}/console/login") as form:
                        if found := re.search(
                            r'name="form_token" value="([0-9a-f]{64})"', await form.text()
                        ):
                            return found[1]
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.1)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def findings(self) -> list[Mapping[str, Any]]:
        """Return what it names, as `status --json` would; none where the page does not come."""
        assert self._session is not None
        try:
            async with self._session.get(f"{self._url}/console", allow_redirects=False) as answer:
                page = await answer.text() if answer.status == 200 else ""
        except (aiohttp.ClientError, TimeoutError):
            return []
        return [
            finding
            for urgency, alarm in _ALARM.findall(page)
            for finding in _findings(urgency, alarm)
        ]


def _findings(urgency: str, alarm: str) -> list[Mapping[str, Any]]:
    page = _PAGE.search(alarm)
    named = None if page is None else f"docs/runbook/{page[1]}.md"
    return [
        {
            "urgency": urgency,
            "about": unescape(about),
            "text": words(text),
            "page": named,
            "cause": None if place == 0 else named,
        }
        for place, (about, text) in enumerate(_FINDING.findall(alarm))
    ]

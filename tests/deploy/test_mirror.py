"""The configuration of docs/mirror.md with a real nginx: the carrier's one URL is ours,
the old view gets a copy.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from tests.world.ports import free_port
from tests.world.proxies import nginx_with

pytestmark = [pytest.mark.usefixtures("own_processes"), pytest.mark.slow]

PAGE: Final = Path(__file__).parents[2] / "docs" / "mirror.md"
BODY: Final = b'{"a": 1,  "b": "\xc3\xa9"}' * 20_000


class Upstream:
    """Writes down what it gets."""

    def __init__(self, text: str) -> None:
        self.port = free_port()
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.silent = False
        self._text = text

    async def answer(self, request: web.Request) -> web.Response:
        self.got.append(
            (
                request.raw_path,
                {name.lower(): value for name, value in request.headers.items()},
                await request.read(),
            )
        )
        if self.silent:
            await asyncio.Event().wait()
        return web.Response(text=self._text)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        application = web.Application(client_max_size=16 * 1024**2)
        application.router.add_route("*", "/{tail:.*}", self.answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self.port).start()
            yield
        finally:
            await runner.cleanup()


async def test_both_get_the_same_push_and_the_answer_is_ours_whatever_the_old_view_does(
    tmp_path: Path,
) -> None:
    ours, old, port = Upstream("ours"), Upstream("old"), free_port()
    text = re.findall(r"```nginx\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[0]
    for stated, here in (
        ("127.0.0.1:8080", f"127.0.0.1:{ours.port}"),
        ("127.0.0.1:8000", f"127.0.0.1:{old.port}"),
    ):
        text = text.replace(stated, here)
    text = text.replace("listen 8443", f"listen 127.0.0.1:{port}")
    url, headers = (
        f"http://127.0.0.1:{port}/webhooks/clickpost?token=t%2Fu",
        {"webhook_key": "secret", "X-Signature": "abc"},
    )
    async with (
        nginx_with(text, tmp_path, port=port),
        aiohttp.ClientSession() as session,
        ours.running(),
    ):

        async def push() -> tuple[int, str]:
            async with session.post(URL(url, encoded=True), data=BODY, headers=headers) as answer:
                return answer.status, await answer.text()

        async with old.running():
            assert await push() == (200, "ours")
            async with asyncio.timeout(10):
                while not old.got:  # noqa: ASYNC110 - another server's
                    await asyncio.sleep(0.01)
            (our_path, our_headers, our_body), (old_path, old_headers, old_body) = (
                ours.got[0],
                old.got[0],
            )
            assert (our_path, old_path) == (
                "/v1/webhooks/clickpost?token=t%2Fu",
                "/webhooks/clickpost?token=t%2Fu",
            )
            assert our_body == old_body == BODY
            for name, value in (("webhook_key", "secret"), ("x-signature", "abc")):
                assert our_headers[name] == old_headers[name] == value
            old.silent = True
            assert [await push() for _ in range(2)] == [(200, "ours")] * 2
        assert await push() == (200, "ours")
    assert len(ours.got) == 4

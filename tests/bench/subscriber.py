"""A subscriber that takes everything at once, so that the notifier has somebody to tell."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def subscriber() -> AsyncIterator[str]:
    """Listen, and return the URL."""

    async def take(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=204)

    application = web.Application()
    application.router.add_post("/", take)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()

"""`GET /console`: the page that an operator opens first. It loads nothing from elsewhere and runs no script but its own.

It calls the API like any other client, with the key that is typed into it.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from aiohttp import web

from statesvc.http.operation import Route, operation

_INLINE: Final = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


def policy(page: str) -> str:
    """The Content-Security-Policy under which just the page's own script and style run."""
    allowed = {kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for kind, text in _INLINE.findall(page)}
    return (
        f"default-src 'none'; script-src 'sha256-{allowed['script']}'; style-src 'sha256-{allowed['style']}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def routes() -> Sequence[Route]:
    """The page. It holds no data: each of its calls needs a key."""
    page = files("statesvc.api").joinpath("console.html").read_text(encoding="utf-8")
    headers = {"Content-Security-Policy": policy(page), "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}

    async def console(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=page, content_type="text/html", charset="utf-8", headers=headers)

    return [
        Route(
            "GET",
            "/console",
            console,
            operation(
                summary="Queues, receivers, dead letters and workers as a page", scope=None, tag="console", response_types=("text/html",)
            ),
        )
    ]

"""Styles and scripts, each under a path with its digest, so that browsers store them for ever."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from aiohttp import hdrs, web

from statesvc.http.operation import Operation, Route, operation
from statesvc.http.problem import Code, Problem

_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_DIGEST_CHARS: Final = 12


class Assets:
    """Every file of `static/`, read once."""

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}
        self._served: dict[str, tuple[bytes, str]] = {}
        folder = files("statesvc.addons.console").joinpath("static")
        for entry in [*folder.iterdir(), *folder.joinpath("vendor").iterdir()]:
            content_type = _TYPES.get("." + entry.name.rpartition(".")[2])
            if content_type is not None:
                body = entry.read_bytes()
                digest = hashlib.sha256(body).hexdigest()[:_DIGEST_CHARS]
                self._urls[entry.name] = f"/console/static/{digest}/{entry.name}"
                self._served[f"{digest}/{entry.name}"] = body, content_type

    def url(self, name: str) -> str:
        """Return the URL of the file. Raises KeyError."""
        return self._urls[name]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        asset = self._served.get(f"{request.match_info['digest']}/{request.match_info['name']}")
        if asset is None:
            raise Problem(
                Code.NOT_FOUND, "no such file; it belongs to another version of this service"
            )
        headers = {hdrs.CACHE_CONTROL: _FOR_EVER, "X-Content-Type-Options": "nosniff"}
        body, content_type = asset
        return web.Response(body=body, content_type=content_type, charset="utf-8", headers=headers)

    def route(self) -> Route:
        """Serve the files, to anyone."""
        path = "/console/static/{digest}/{name}"
        contract: Operation[None] = operation(
            operation_id="get_console_file", summary="Styles and scripts", scope=None, checked=False
        )
        return Route("GET", path, self._serve, contract)


@cache
def shipped_assets() -> Assets:
    return Assets()

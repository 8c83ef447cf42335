"""Styles and scripts, each under a path with its digest, so that browsers store them for ever."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
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


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    content_type: str


class Assets:
    """Every file of `static/`, read once."""

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}
        self._served: dict[str, Asset] = {}
        for name, content_type, body in _found(files("statesvc.addons.console").joinpath("static")):
            digest = hashlib.sha256(body).hexdigest()[:_DIGEST_CHARS]
            self._urls[name] = f"/console/static/{digest}/{name}"
            self._served[f"{digest}/{name}"] = Asset(body, content_type)

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
        return web.Response(
            body=asset.body, content_type=asset.content_type, charset="utf-8", headers=headers
        )

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


def _found(folder: Traversable) -> Iterator[tuple[str, str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _found(entry)
        elif content_type := _TYPES.get("." + entry.name.rpartition(".")[2]):
            yield entry.name, content_type, entry.read_bytes()

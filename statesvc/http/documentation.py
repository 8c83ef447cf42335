"""`/openapi.json` and `/docs`, its page by Redoc, which uses no other host."""

import html
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from importlib.resources import files
from typing import Final

import orjson
from aiohttp import hdrs, web

from statesvc.background.forking import forked_result
from statesvc.http.openapi import Examples, Hook, build_document
from statesvc.http.operation import Handler, Operation, Route, operation
from statesvc.http.problem import PROBLEM_KINDS

REDOC: Final = "redoc-2.5.2.standalone.js"
_POLICY: Final = (
    # Redoc writes its styles into the page, and searches in a worker that it makes itself
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors"
    " 'none'"
)
# By path: the file, its media type, for how long a browser may store it.
_FILES: Final[Mapping[str, tuple[str, str, str]]] = {
    f"/docs/{REDOC}": (f"vendor/{REDOC}", "text/javascript", "public, max-age=31536000, immutable"),
    "/docs/docs.js": ("docs.js", "text/javascript", "no-cache"),
    "/docs/docs.css": ("docs.css", "text/css", "no-cache"),
}
_FOLDER: Final = files("statesvc.http") / "docs"


def documentation_routes(
    documented: Sequence[Route],
    *,
    version: str,
    hooks: Sequence[Hook] = (),
    examples: Callable[[], Examples] = dict,
) -> list[Route]:
    """Return `/openapi.json` and `/docs` for these routes and for the requests of the service."""
    # schemas of all bodies, ten megabytes on the way to one
    document = forked_result(
        lambda: orjson.dumps(
            build_document(documented, version=version, hooks=hooks, examples=examples())
        )
    )
    page = (
        _FOLDER.joinpath("docs.html")
        .read_text("utf-8")
        .replace("<!-- problems -->", _problems())
        .encode()
    )

    async def openapi(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=document, content_type="application/json")

    async def docs(_request: web.Request) -> web.StreamResponse:
        return web.Response(
            body=page,
            content_type="text/html",
            charset="utf-8",
            headers={"Content-Security-Policy": _POLICY},
        )

    async def begin(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=HTTPStatus.FOUND, headers={hdrs.LOCATION: "/docs"})

    return [
        _route("/", begin, "begin", "To the page of this API", "text/html"),
        _route("/openapi.json", openapi, "get_openapi", "This API as OpenAPI 3.1"),
        _route("/docs", docs, "open_docs", "This API as a page", "text/html"),
        *(_file_route(path, *file) for path, file in _FILES.items()),
    ]


def _problems() -> str:
    """Return the rows that the `type` of a problem leads to."""
    return "\n".join(
        f'<tr id="problem-{code.value}"><td><code>{code.value}</code></td><td>{kind.status:d}</td>'
        f"<td>{html.escape(kind.title)}</td><td>{html.escape(kind.remedy)}</td></tr>"
        for code, kind in PROBLEM_KINDS.items()
    )


def _file_route(path: str, name: str, content_type: str, stored: str) -> Route:
    headers = {hdrs.CACHE_CONTROL: stored, "X-Content-Type-Options": "nosniff"}

    async def serve(_request: web.Request) -> web.StreamResponse:
        # read when it is asked for: a megabyte that a process would hold for nobody
        body = _FOLDER.joinpath(name).read_bytes()
        return web.Response(body=body, content_type=content_type, charset="utf-8", headers=headers)

    return _route(
        path,
        serve,
        f"get_{path.rpartition('/')[2].partition('-')[0].replace('.', '_')}",
        "A part of the page",
        content_type,
    )


def _route(
    path: str, handler: Handler, name: str, summary: str, content_type: str = "application/json"
) -> Route:
    described: Operation[None] = operation(
        operation_id=name,
        summary=summary,
        scope=None,
        tag="documentation",
        response_types=(content_type,),
    )
    return Route("GET", path, handler, described)

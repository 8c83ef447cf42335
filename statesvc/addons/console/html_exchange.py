"""HTTP of pages besides templates: reading forms, problems that a person can read, redirects."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import orjson
from aiohttp import hdrs, web

from statesvc.addons.console.pages import Templates
from statesvc.http.middleware import problems
from statesvc.http.problem import PROBLEM, SEE_OTHER, Code, Problem

_FORM: Final = web.RequestKey("console_form", dict[str, str])

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def read_form(request: web.Request) -> dict[str, str]:
    if _FORM not in request:
        if request.content_type != "application/x-www-form-urlencoded":
            raise Problem(Code.UNSUPPORTED_MEDIA_TYPE, "send the form as the page has it")
        fields = await request.post()
        request[_FORM] = {name: value for name, value in fields.items() if isinstance(value, str)}
    return request[_FORM]


def readable(handler: Handler, pages: Templates, home: str) -> Handler:
    """Return the handler with its problems as pages that lead to `home`."""

    async def call(request: web.Request) -> web.StreamResponse:
        response = await problems(request, handler)
        code = response.get(PROBLEM)
        if (
            code is None
            or not isinstance(response, web.Response)
            or not isinstance(response.body, bytes)
        ):
            return response
        document = orjson.loads(response.body)
        page = pages.response(
            "problem.html", {"problem": document, "home": home}, status=response.status
        )
        page[PROBLEM] = code
        return page

    return call


def utc_instant(text: str, name: str) -> str:
    """Parse a time of a form, in UTC unless it has an offset."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Problem(
            Code.INVALID_REQUEST, f"`{name}` is not a valid time; use 2026-03-01T08:00"
        ) from None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).isoformat()


def attachment(content: bytes, content_type: str, name: str) -> web.Response:
    headers = {
        hdrs.CONTENT_DISPOSITION: f'attachment; filename="{name}"',
        hdrs.CACHE_CONTROL: "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return web.Response(body=content, content_type=content_type, headers=headers)


def redirect(to: str) -> web.Response:
    return web.Response(
        status=SEE_OTHER, headers={hdrs.LOCATION: to, hdrs.CACHE_CONTROL: "no-store"}
    )

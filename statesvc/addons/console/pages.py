"""HTTP of pages: templates, forms, files, redirects, problems that a person can read.

All values are escaped; no foreign resources, only our scripts and styles.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import orjson
from aiohttp import hdrs, web
from jinja2 import Environment, PackageLoader, StrictUndefined

from statesvc import __version__
from statesvc.addons.console import formats
from statesvc.addons.console.assets import shipped_assets
from statesvc.addons.console.charts import meter
from statesvc.http.middleware import problems
from statesvc.http.problem import OK, PROBLEM, SEE_OTHER, Code, Problem
from statesvc.shipments.plain_names import spaced

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    hdrs.CACHE_CONTROL: "no-store",
}


class Templates:
    def __init__(self) -> None:
        self._environment = _environment()

    def response(
        self,
        template: str,
        values: Mapping[str, Any],
        *,
        status: int = OK,
    ) -> web.Response:
        """Render the page. It may be for this caller only, so caches must not store it."""
        text = self._environment.get_template(template).render(values)
        return web.Response(
            text=text,
            status=status,
            content_type="text/html",
            charset="utf-8",
            headers=_HEADERS,
        )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("statesvc.addons.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "count": formats.count,
        "duration": formats.seconds,
        "instant": formats.instant,
        "short": formats.short,
        "clock": formats.clock,
        "spaced": spaced,
        "unbroken": formats.unbroken,
    }
    environment.globals |= {
        "asset": shipped_assets().url,
        "meter": meter,
        "version": __version__,
    }
    return environment


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

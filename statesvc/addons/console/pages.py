"""Pages from templates: all values escaped, no foreign resources, only our scripts and styles."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from aiohttp import hdrs, web
from jinja2 import Environment, PackageLoader, StrictUndefined

from statesvc import __version__
from statesvc.addons.console import formats
from statesvc.addons.console.assets import shipped_assets
from statesvc.addons.console.charts import meter
from statesvc.http.problem import OK
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
        headers: Mapping[str, str] | None = None,
    ) -> web.Response:
        """Render the page. It may be for this caller only, so caches must not store it."""
        text = self._environment.get_template(template).render(values)
        return web.Response(
            text=text,
            status=status,
            content_type="text/html",
            charset="utf-8",
            headers={**_HEADERS, **(headers or {})},
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
        "stated": formats.stated,
        "spaced": spaced,
        "unbroken": formats.unbroken,
    }
    environment.globals |= {
        "asset": shipped_assets().url,
        "meter": meter,
        "version": __version__,
    }
    return environment

"""Pages from templates: all values escaped, no foreign resources, only our scripts and styles."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from aiohttp import hdrs, web
from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from statesvc import __version__
from statesvc.addons.console.assets import shipped_assets
from statesvc.addons.console.charts import meter
from statesvc.background.duration import duration
from statesvc.delivery.outcome_words import outcome_words
from statesvc.http.problem import OK
from statesvc.shipments.plain_names import spaced
from statesvc.shipments.printed_times import offset, stated_instant

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    hdrs.CACHE_CONTROL: "no-store",
}


_OFFSET: Final = re.compile(r"UTC[+-]\d\d:\d\d")
_UUID: Final = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


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
        text = self._environment.get_template(template).render(now=datetime.now(UTC), **values)
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
        "count": _count,
        "duration": _duration,
        "instant": _instant,
        "parsed": datetime.fromisoformat,
        "percent": _percent,
        "ago": _ago,
        "short": _short,
        "since": _since,
        "clock": _clock,
        "given": _given,
        "stated": _stated,
        "stated_short": _stated_short,
        "spaced": spaced,
        "unbroken": _unbroken,
    }
    environment.globals |= {
        "asset": shipped_assets().url,
        "meter": meter,
        "outcome_words": outcome_words,
        "version": __version__,
    }
    return environment


def _count(number: float | None) -> str:
    return "" if number is None else f"{number:,}"


def _given(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value is not None}


def _short(text: str) -> str:
    """Shorten the ids in it to their first part."""
    return _UUID.sub(r"\1", text)


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else duration(max(seconds, 0.0))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %".replace(".0 %", " %")


def _instant(at: datetime | str | None) -> Markup | str:
    """Format as `<time>`, to the second, in UTC; the browser adds its own zone."""
    if at is None:
        return ""
    parsed = datetime.fromisoformat(at) if isinstance(at, str) else at
    utc = parsed.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.isoformat(timespec="seconds"), f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    )


def _clock(at: str) -> Markup:
    """Format as `<time>`, hours and minutes in UTC; the day too where it is not today."""
    utc = datetime.fromisoformat(at).astimezone(UTC)
    shown = f"{utc:%H:%M}" if utc.date() == datetime.now(UTC).date() else f"{utc:%d %b %H:%M}"
    return Markup('<time datetime="{}">{}</time>').format(utc.isoformat(timespec="seconds"), shown)


def _unbroken(text: str) -> Markup:
    """Keep an offset from UTC on a single line: browsers break behind its minus."""
    return Markup(_OFFSET.sub(r'<span class="nowrap">\g<0></span>', str(escape(text))))  # noqa: S704 - escaped


def _stated(at: str | None) -> Markup | str:
    """Format as `<time>`, in the offset that it is written with: the carrier's own clock."""
    return (
        ""
        if at is None
        else Markup('<time datetime="{}">{}</time>').format(at, _unbroken(stated_instant(at)))
    )


def _stated_short(at: str | None) -> Markup | str:
    """Format for a list: to the minute, with the year if it is not the present."""
    if at is None:
        return ""
    parsed = datetime.fromisoformat(at)
    year = "" if parsed.year == datetime.now(UTC).year else f" {parsed.year}"
    shown = f"{parsed.day} {parsed:%b}{year} {parsed:%H:%M} {offset(parsed)}"
    return Markup('<time datetime="{}" class="nowrap">{}</time>').format(at, shown)


@pass_context
def _ago(context: Context, at: datetime | str | None) -> str:
    if at is None:
        return ""
    parsed = datetime.fromisoformat(at) if isinstance(at, str) else at
    now: datetime = context["now"]
    seconds = (now - parsed).total_seconds()
    return "just now" if seconds < 1 else f"{duration(seconds)} ago"


@pass_context
def _since(context: Context, at: float) -> str:
    """Format how long ago it was, of seconds since 1970."""
    now: datetime = context["now"]
    return f"{duration(max(now.timestamp() - at, 0.0))} ago"

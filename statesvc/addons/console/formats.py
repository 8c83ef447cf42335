"""Values as pages print them: times, shares, chips."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup, escape

from statesvc.background.duration import duration
from statesvc.shipments.printed_times import offset, stated_instant

_OFFSET: Final = re.compile(r"UTC[+-]\d\d:\d\d")
_UUID: Final = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


def chip(words: str, style: str = "") -> Markup:
    return Markup('<span class="chip {}">{}</span>').format(style, words)


def link(path: str, words: str, style: str = "") -> Markup:
    return Markup('<a href="{}" class="{}">{}</a>').format(path, style, words)


def heading(title: str) -> Markup:
    return Markup('<h2 id="{}">{}</h2>').format(title.lower().replace(" ", "-"), title)


def tabs(label: str, entries: Iterable[tuple[str, str, bool]]) -> Markup:
    """Return links with their words, and whether each is the page that is open."""
    mark = Markup(' aria-current="true"')
    links = [
        Markup('<a href="{}"{}>{}</a>').format(path, mark if is_here else "", words)
        for words, path, is_here in entries
    ]
    return Markup('<nav class="filters" aria-label="{}">{}</nav>').format(
        label, Markup().join(links)
    )


def alarm(words: str, style: str, *actions: Markup) -> Markup:
    """Return what needs someone. `style`: now, human or note, as the urgency of findings."""
    return Markup(
        '<div class="trouble {} alarm flat"><p>{}</p><div class="actions">{}</div></div>'
    ).format(style, words, Markup().join(actions))


def count(number: float | None) -> str:
    return "" if number is None else f"{number:,}"


def short(text: str) -> str:
    """Shorten the ids in it to their first part."""
    return _UUID.sub(r"\1", text)


def seconds(number: float | None) -> str:
    return "" if number is None else duration(max(number, 0.0))


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %".replace(".0 %", " %")


def instant(at: datetime | str | None) -> Markup | str:
    """Format as `<time>`, to the second, in UTC; the browser adds its own zone."""
    if at is None:
        return ""
    utc = (datetime.fromisoformat(at) if isinstance(at, str) else at).astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.isoformat(timespec="seconds"), f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    )


def clock(at: datetime) -> Markup:
    """Format as `<time>`, hours and minutes in UTC; the day too where it is not today."""
    utc = at.astimezone(UTC)
    shown = f"{utc:%H:%M}" if utc.date() == datetime.now(UTC).date() else f"{utc:%d %b %H:%M}"
    return Markup('<time datetime="{}">{}</time>').format(utc.isoformat(timespec="seconds"), shown)


def unbroken(text: str) -> Markup:
    """Keep an offset from UTC on a single line: browsers break behind its minus."""
    kept = _OFFSET.sub(r'<span class="nowrap">\g<0></span>', str(escape(text)))
    return Markup(kept)  # noqa: S704 - escaped before the marks were set


def stated(at: str | None) -> Markup | str:
    """Format as `<time>`, in the offset that it is written with: the carrier's own clock."""
    if at is None:
        return ""
    return Markup('<time datetime="{}">{}</time>').format(at, unbroken(stated_instant(at)))


def stated_short(at: str | None) -> Markup | str:
    """Format for a list: to the minute, with the year if it is not the present."""
    if at is None:
        return ""
    parsed = datetime.fromisoformat(at)
    year = "" if parsed.year == datetime.now(UTC).year else f" {parsed.year}"
    shown = f"{parsed.day} {parsed:%b}{year} {parsed:%H:%M} {offset(parsed)}"
    return Markup('<time datetime="{}" class="nowrap">{}</time>').format(at, shown)


def ago(at: str | None) -> str:
    if at is None:
        return ""
    passed = (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
    return "just now" if passed < 1 else f"{duration(passed)} ago"

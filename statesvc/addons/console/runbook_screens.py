"""The runbook, the target of the pager's links: docs/runbook in the console's frame."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from statesvc.addons.console.screen import MenuGroup, PageRequest, Screen
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.runbook import INDEX, pages, read, title

LIST: Final = "/console/runbook"
ONE: Final = LIST + "/{page}"
_COMMENT: Final = re.compile(r"<!--.*?-->\n?", re.DOTALL)


async def show_index(_visit: PageRequest) -> Mapping[str, Any]:
    """Show the page that lists the others."""
    return {"blocks": [_html(INDEX)]}


async def show_page(visit: PageRequest) -> Mapping[str, Any]:
    """Show a page. Raises Problem."""
    name = visit.path("page")
    if name not in pages():
        raise Problem(Code.NOT_FOUND, f"the runbook has no page {name}")
    return {"title": title(name), "blocks": [_html(name)], "crumb": (LIST, "Runbook", name)}


@cache
def _html(name: str) -> Markup:
    """Return a page without its heading, which the frame shows.

    Its HTML is escaped; its links lead only to pages of the console.
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(_COMMENT.sub("", read(name).partition("\n")[2]))
    for place, token in enumerate(tokens):
        if token.type in {"fence", "code_block"}:
            token.attrSet("tabindex", "0")
        elif token.type in {"th_open", "td_open"}:
            _show_cell(tokens[place : place + 3])
        token.children = None if token.children is None else list(_linked(token.children))
    # the renderer escaped every text of it, and no page is written by a user
    prose = Markup(reader.renderer.render(tokens, reader.options, {}))  # noqa: S704
    return Markup('<div class="prose">{}</div>').format(prose)


def _show_cell(cell: list[Token]) -> None:
    """Align by a class, because the policy forbids styles; and have no heading without words."""
    opened, content, closed = cell
    if "right" in str(opened.attrs.pop("style", "")):
        opened.attrSet("class", "number")
    if not content.content:
        opened.tag = closed.tag = "td"


def _linked(tokens: list[Token]) -> list[Token]:
    """Link to other pages of the runbook.

    Other links become text, because no console serves their targets.
    """
    kept: list[Token] = []
    is_open = False
    for token in tokens:
        if token.type == "link_open":
            target, _, place = str(token.attrGet("href") or "").partition("#")
            page = target.removesuffix(".md")
            is_open = page in pages() or target.startswith(("https://", "http://"))
            if page in pages():
                token.attrSet(
                    "href",
                    LIST
                    if page == INDEX
                    else f"{LIST}/{quote(page)}{f'#{place}' if place else ''}",
                )
        if token.type not in {"link_open", "link_close"} or is_open:
            kept.append(token)
    return kept


def runbook_pages() -> list[Screen]:
    about: dict[str, Any] = {"title": "Runbook", "scope": Scope.OPS, "section": LIST}
    menu: dict[str, Any] = {"menu": "Runbook", "group": MenuGroup.OPERATORS}
    return [
        Screen(path=LIST, show=show_index, **menu, **about),
        Screen(path=ONE, show=show_page, **about),
    ]

"""`/cells`: the cells for people, and the way into each one's console.

A console is of one cell. Which one the browser looks at is a cookie of its own; the session is that cell's: changing cells means a login
there. The page takes no key and names no address.
"""

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

import jinja2
from aiohttp import hdrs, web

from statesvc.gateway.cell_client import CellClient
from statesvc.http.operation import Route, operation, raw_route
from statesvc.http.problem import SEE_OTHER, Code, Problem

CONSOLE: Final = "/console"
PATH: Final = "/cells"
CONSOLE_COOKIE: Final = "statesvc_cell"
_STYLE: Final = files("statesvc.gateway").joinpath("cells.css").read_text("utf-8")
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    hdrs.CACHE_CONTROL: "no-store",
}


@dataclass(frozen=True, slots=True)
class CellsPage:
    """The handlers."""

    cells: CellClient
    page: jinja2.Template

    async def show(self, request: web.Request) -> web.StreamResponse:
        """The cells, whether each is ready, and their carriers."""
        directory = self.cells.directory
        ready = (await self.cells.ask_all(request, "GET", "/readyz")).answers
        rows = [
            {"name": name, "is_ready": name in ready, "carriers": directory.carriers_of(name), "is_default": name == directory.default}
            for name in directory.cells
        ]
        text = self.page.render(cells=rows, epoch=directory.epoch, chosen=request.cookies.get(CONSOLE_COOKIE), style=_STYLE)
        return web.Response(text=text, content_type="text/html", headers=_HEADERS)

    async def choose(self, request: web.Request) -> web.StreamResponse:
        """From now on this browser's console is the cell's."""
        name = request.match_info["name"]
        if name not in self.cells.directory.cells:
            raise Problem(Code.NOT_FOUND, f"there is no such cell; there are: {', '.join(self.cells.directory.cells)}")
        response = web.Response(status=SEE_OTHER, headers={hdrs.LOCATION: CONSOLE})
        response.set_cookie(CONSOLE_COOKIE, name, path="/", httponly=True, samesite="Lax")
        return response

    async def console(self, request: web.Request) -> web.StreamResponse:
        """Of the cell that the browser has chosen."""
        name = request.cookies.get(CONSOLE_COOKIE)
        if name not in self.cells.directory.cells:
            return web.Response(status=SEE_OTHER, headers={hdrs.LOCATION: PATH})
        return await self.cells.forward(request, name)


def routes(cells: CellClient) -> Sequence[Route]:
    """The page, the choice, and the console behind it."""
    text = files("statesvc.gateway").joinpath("cells.html.jinja").read_text("utf-8")
    page = CellsPage(cells, jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=True).from_string(text))
    described: Any = {"scope": None, "checked": False}
    return [
        raw_route(f"GET {PATH}", page.show, operation_id="show_cells", summary="The cells, for people", deadline_seconds=30.0, **described),
        raw_route(
            f"GET {PATH}/{{name}}", page.choose, operation_id="choose_cell", summary="Whose console", deadline_seconds=30.0, **described
        ),
        *(
            Route(
                method,
                CONSOLE + "{path:.*}",
                page.console,
                operation(operation_id=f"console_{method.lower()}", summary="The console", deadline_seconds=None, **described),
            )
            for method in ("GET", "POST")
        ),
    ]

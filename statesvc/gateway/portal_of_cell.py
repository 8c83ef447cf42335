"""`/portal` through the gateway: that of the one cell which made the link, and which the link names.

Attempts are each cell's own, and so is the portal; the gateway has no key to act in the other cells with, so what has to be alike in all of
them (pause, a new secret) the cell refuses there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import hdrs, web

from statesvc.gateway.cell_client import CellClient
from statesvc.gateway.cells_page import CONSOLE_COOKIE
from statesvc.http.operation import Route, raw_route
from statesvc.http.problem import SEE_OTHER, Code, Problem

PORTAL: Final = "/portal"
_ASSETS: Final = "/console/static"
_CELL: Final = "cell"
"""The parameter of the link (statesvc/api/subscriptions/portal_links.py)."""
_COOKIE: Final = "statesvc_portal_cell"


@dataclass(frozen=True, slots=True)
class PortalOfCell:
    """The handlers."""

    cells: CellClient

    async def enter(self, request: web.Request) -> web.StreamResponse:
        """Remembers the link's cell, and opens the link there; all that follows goes to the remembered cell."""
        name = request.query.get(_CELL)
        if name is None:
            return await self.go_on(request)
        if name not in self.cells.directory.cells:
            raise _no_cell()
        # where the rest of the link leads is the cell's matter
        response = web.Response(status=SEE_OTHER, headers={hdrs.LOCATION: str(request.rel_url.without_query_params(_CELL))})
        response.set_cookie(_COOKIE, name, path="/", httponly=True, samesite="Lax")
        return response

    async def go_on(self, request: web.Request) -> web.StreamResponse:
        """In the cell of the link."""
        name = request.cookies.get(_COOKIE)
        if name not in self.cells.directory.cells:
            raise _no_cell()
        return await self.cells.forward(request, name)

    async def assets(self, request: web.Request) -> web.StreamResponse:
        """Styles and scripts, which are alike in cells of one release."""
        looked_at = (request.cookies.get(cookie) for cookie in (_COOKIE, CONSOLE_COOKIE))
        directory = self.cells.directory
        return await self.cells.forward(request, next((name for name in looked_at if name in directory.cells), directory.default))


def _no_cell() -> Problem:
    return Problem(Code.NOT_FOUND, "a portal is of one cell, which its link names: open the whole link again, or ask for a new one")


def routes(cells: CellClient) -> Sequence[Route]:
    """The pages, and what they are drawn with."""
    portal = PortalOfCell(cells)
    described: Any = {"summary": "The portal of a subscriber", "scope": None, "checked": False, "deadline_seconds": None}
    return [
        raw_route(f"GET {PORTAL}", portal.enter, operation_id="enter_portal", **described),
        raw_route(f"GET {PORTAL}/{{path:.*}}", portal.go_on, operation_id="show_portal", **described),
        raw_route(f"POST {PORTAL}/{{path:.*}}", portal.go_on, operation_id="act_in_portal", **described),
        raw_route(f"GET {_ASSETS}/{{path:.*}}", portal.assets, operation_id="get_portal_asset", **described),
    ]

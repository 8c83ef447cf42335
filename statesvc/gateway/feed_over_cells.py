"""`GET /v1/feed` over all cells: each log in its own order, with a place in each. There is no order between logs, and none is made up."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from statesvc.cells.directory import CELL_NAME
from statesvc.gateway.cell_client import CellAnswer, CellClient, RefusedError
from statesvc.gateway.merged_page import limit_of
from statesvc.http.operation import Route, answer, operation
from statesvc.http.problem import Code, Problem
from statesvc.log.cursor import CURSOR_PATTERN

_LIMIT_DEFAULT: Final = 100
_LIMIT_MAX: Final = 1000
_GONE: Final = 410
_PLACE: Final = re.compile(f"{CELL_NAME.removesuffix('$')}={CURSOR_PATTERN.removeprefix('^')}")


def written_places(places: Mapping[str, str]) -> str:
    """`north=1.57,south=1.8`."""
    return ",".join(f"{name}={place}" for name, place in places.items())


def read_places(text: str) -> dict[str, str]:
    """What `written_places` wrote. Raises the problem `invalid_cursor`."""
    parts = text.split(",") if text else []
    if not all(map(_PLACE.fullmatch, parts)):
        raise Problem(
            Code.INVALID_CURSOR, "`after` is the `cursor` of an answer of the gateway: a place in each cell, as in north=1.57,south=1.8"
        )
    return dict(part.split("=") for part in parts)


@dataclass(frozen=True, slots=True)
class FeedOverCells:
    """The handler."""

    cells: CellClient

    async def feed(self, request: web.Request) -> web.StreamResponse:
        """Entries after the place in each log. A cell that does not answer keeps its place."""
        names = list(self.cells.directory.cells)
        known = read_places(request.query.get("after", ""))
        places = {name: known.get(name, "-1") for name in names}
        limit = limit_of(request.query.get("limit"), default=_LIMIT_DEFAULT, maximum=_LIMIT_MAX)
        share = max(1, limit // len(names))
        gathered = await self.cells.gather(request, {name: {"after": places[name], "limit": share} for name in names})
        try:
            gathered.require_any()
        except RefusedError as refused:
            return _lost(gathered.answers, places) or refused.response()
        found = gathered.documents
        after = {**places, **{name: document["cursor"] for name, document in found.items()}}
        is_end = all(document["next_cursor"] is None for document in found.values())
        return answer(
            {
                "items": [{**item, "cell": name} for name, document in found.items() for item in document["items"]],
                "next_cursor": None if is_end else written_places(after),
                "cursor": written_places(after),
                "tree_sizes": {name: document["tree_size"] for name, document in found.items()},
                "partial": gathered.partial,
            }
        )


def _lost(answers: Mapping[str, CellAnswer], places: Mapping[str, str]) -> web.StreamResponse | None:
    """Where a cell's log was restored: where to go on in it, with the places in the others as they were."""
    for name, found in answers.items():
        if found.status == _GONE:
            go_on = {**places, name: found.document["go_on_after"]}
            return answer({**found.document, "cell": name, "go_on_after": written_places(go_on)}, status=_GONE)
    return None


def routes(cells: CellClient) -> Sequence[Route]:
    """The one call."""
    return [
        Route(
            "GET",
            "/v1/feed",
            FeedOverCells(cells).feed,
            operation(operation_id="read_feed", summary="The logs by index", scope=None, checked=False, deadline_seconds=30.0),
        )
    ]

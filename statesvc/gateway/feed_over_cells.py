"""`GET /v1/feed` and `/v1/feed/transitions` over all cells: each log in its own order, with a place in each.

There is no order between logs, and none is made up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from statesvc.gateway.cell_client import CellClient, RefusedError, one_or_all
from statesvc.gateway.merged_page import limit_of
from statesvc.gateway.places import lost_place, read_places, written_places
from statesvc.http.operation import Route, answer, raw_route

_LIMIT_DEFAULT: Final = 100
_LIMIT_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class FeedOverCells:
    """The handler."""

    cells: CellClient

    async def feed(self, request: web.Request) -> web.StreamResponse:
        """Entries after the place in each log. A cell that does not answer retains its place."""
        names = list(self.cells.directory.cells)
        known = read_places(request.query.get("after", ""))
        places = {name: known.get(name, "-1") for name in names}
        limit = limit_of(request.query.get("limit"), default=_LIMIT_DEFAULT, maximum=_LIMIT_MAX)
        share = max(1, limit // len(names))
        query: dict[str, Any] = {key: request.query.getall(key) for key in request.query if key not in {"after", "limit"}}
        gathered = await self.cells.gather(request, {name: {**query, "after": places[name], "limit": share} for name in names})
        try:
            gathered.require_any()
        except RefusedError:
            refused = next((name, each) for name, each in gathered.answers.items() if each.is_refusal)
            raise RefusedError(lost_place(*refused, places)) from None
        found = gathered.documents
        after = {**places, **{name: document["cursor"] for name, document in found.items()}}
        is_end = all(document["next_cursor"] is None for document in found.values())
        sizes = {name: document["tree_size"] for name, document in found.items() if "tree_size" in document}
        return answer(
            {
                "items": [{**item, "cell": name} for name, document in found.items() for item in document["items"]],
                "next_cursor": None if is_end else written_places(after),
                "cursor": written_places(after),
                **({"tree_sizes": sizes} if sizes else {}),
                "partial": gathered.partial,
            }
        )


def routes(cells: CellClient) -> Sequence[Route]:
    """Both calls."""
    described = "Of all cells, each item with its `cell`; `cursor` holds a place in each log, and there is no order between logs."
    handler = one_or_all(cells, FeedOverCells(cells).feed)
    return [
        raw_route(
            f"GET {path}",
            handler,
            operation_id=name,
            summary=summary,
            description=described,
            scope=None,
            checked=False,
            deadline_seconds=30.0,
        )
        for path, name, summary in (
            ("/v1/feed", "read_feed", "The logs by index"),
            ("/v1/feed/transitions", "list_transitions", "Changes of status from the beginning"),
        )
    ]

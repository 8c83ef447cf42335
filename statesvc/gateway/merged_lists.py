"""Lists over all cells: shipments and dead letters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from statesvc.gateway.cell_client import CellClient, RefusedError, one_or_all
from statesvc.gateway.merged_page import CellList, Item, ListOrder, Place, decode_places, encode_places, limit_of, merge
from statesvc.http.operation import Route, answer, raw_route
from statesvc.http.paging import LIMIT_DEFAULT, LIMIT_MAX

_TURNS_MAX: Final = 4
"""Pages that a call reads of a cell whose pages hold nothing new, as filters that fit few shipments make them."""


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _change(shipment: Item) -> list[Any]:
    return [_instant(shipment["recorded_at"]).isoformat(timespec="microseconds"), shipment["shipment_id"]]


SHIPMENTS: Final = ListOrder(key=_change, rank=_change)
"""By their last change."""
DEAD_LETTERS: Final = ListOrder(
    key=lambda one: [-one["dead_letter_id"]], rank=lambda one: (-_instant(one["created_at"]).timestamp(), -one["dead_letter_id"])
)
"""The newest first. Their numbers are of their cell; across cells their times compare."""
SUBSCRIPTIONS: Final = ListOrder(
    key=lambda one: [_instant(one["created_at"]).isoformat(timespec="microseconds"), one["id"]],
    rank=lambda one: (_instant(one["created_at"]), one["id"]),
)
"""The oldest first, each as each cell has it."""


@dataclass(frozen=True, slots=True)
class MergedList:
    """The handler of one list."""

    cells: CellClient
    order: ListOrder

    async def page(self, request: web.Request) -> web.StreamResponse:
        """The next items over all cells; `partial` names the cells that did not answer."""
        limit = limit_of(request.query.get("limit"), default=LIMIT_DEFAULT, maximum=LIMIT_MAX)
        bound_to = {"path": request.path, "query": sorted((k, v) for k, v in request.query.items() if k not in {"limit", "cursor"})}
        cursor = request.query.get("cursor")
        places = {} if cursor is None else decode_places(cursor, bound_to)
        lists = {name: CellList(places.get(name, Place())) for name in self.cells.directory.cells}
        partial = await self._read(request, lists, limit)
        read = {name: part for name, part in lists.items() if name not in partial}
        items = merge(read, self.order, limit=limit)
        is_last = all(not part.items and part.next_cursor is None for part in read.values())
        next_cursor = None if is_last else encode_places({name: part.place for name, part in lists.items()}, bound_to)
        return answer({"items": items, "next_cursor": next_cursor, "partial": partial})

    async def _read(self, request: web.Request, lists: Mapping[str, CellList], limit: int) -> list[str]:
        """Reads each cell's page; the names of those that do not answer. Raises RefusedError, and the problem 503 where none does."""
        partial: set[str] = set()
        names = list(lists)
        for turn in range(_TURNS_MAX):
            gathered = await self.cells.gather(request, {name: _query(request, lists[name].place, limit) for name in names})
            if turn == 0:
                gathered.require_any()
            for name, found in gathered.answers.items():
                if found.is_refusal:
                    raise RefusedError(found)
                lists[name].turn(found.document, self.order)
            partial |= set(gathered.partial)
            names = [name for name in names if name in gathered.answers and lists[name].is_open]
            if not names:
                break
        return sorted(partial)


def _query(request: web.Request, place: Place, limit: int) -> dict[str, Any]:
    query: dict[str, Any] = {name: request.query.getall(name) for name in request.query if name not in {"limit", "cursor"}}
    return {**query, "limit": str(limit), **({} if place.cursor is None else {"cursor": place.cursor})}


def routes(cells: CellClient) -> Sequence[Route]:
    """The lists."""
    described = (
        "Over all cells, in one order; each item names its `cell`, and `partial` the cells that did not answer. The cells check the key."
    )
    return [
        raw_route(
            f"GET {path}",
            one_or_all(cells, MergedList(cells, order).page),
            operation_id=name,
            summary=summary,
            description=described,
            scope=None,
            checked=False,
            deadline_seconds=30.0,
        )
        for path, name, summary, order in (
            ("/v1/shipments", "list_shipments", "Find and list shipments", SHIPMENTS),
            ("/v1/dead-letters", "list_dead_letters", "List dead letters", DEAD_LETTERS),
            ("/v1/subscriptions", "list_subscriptions", "List subscriptions, as each cell has them", SUBSCRIPTIONS),
        )
    ]

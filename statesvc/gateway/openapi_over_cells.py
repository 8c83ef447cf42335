"""`/openapi.json` of the gateway: that of a cell, with what the gateway adds to its calls. So it cannot disagree with the cells."""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from aiohttp import web

from statesvc.cells.directory import CELL_HEADER
from statesvc.cells.proxies import CARRIER_PATHS
from statesvc.gateway.cell_client import CellClient, unavailable
from statesvc.gateway.places import PLACES_PATTERN
from statesvc.http.openapi import build_document
from statesvc.http.operation import Route, answer, raw_route
from statesvc.log.cursor import CURSOR_PATTERN

_OF_CARRIER: Final = re.compile(rf"/v1/(?:{'|'.join(CARRIER_PATHS)})/{{carrier_id}}(?:/.*)?")
_OWN: Final = ("/livez", "/readyz", "/openapi.json", "/docs")
"""Answered for the gateway itself, or alike in all cells."""
_WITHOUT_PARTIAL: Final = frozenset({"get_shipment_by_id", "submit_events", "stream_transitions", "delete_subscription"})
_PARTIAL: Final = {
    "type": "object",
    "properties": {
        "partial": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The cells whose part is missing. Not in the answer of one cell.",
        }
    },
}
_OF_ONE_CELL: Final = {"Feed": "tree_size", "SubscriptionDetail": "limiter"}
"""Members of answers that a merged one has by cell, as `tree_sizes` and under `cells`."""
_PLACES_RULE: Final = f"`{{}}` is a place in each log (`north=1.57,south=1.8`); with {CELL_HEADER}, a place in that cell's log (`1.57`)"


def document_over_cells(document: Mapping[str, Any], spanning: Mapping[str, str], names: Sequence[str]) -> dict[str, Any]:
    """A cell's document as it is true of the gateway. `names`: of the cells.

    `spanning`: by the id of the operation, what the gateway makes of it.
    """
    changed = deepcopy(dict(document))
    for name, member in _OF_ONE_CELL.items():
        changed["components"]["schemas"][name]["required"].remove(member)
    # a place that is none of the gateway's
    feed, stream = (changed["paths"][path]["get"]["responses"] for path in ("/v1/feed", "/v1/stream"))
    stream["400"] = feed["400"]
    for path, methods in changed["paths"].items():
        for described in methods.values():
            over_cells = spanning.get(described["operationId"])
            if over_cells is not None:
                _add_partial(described)
                _widen_places(described)
                described["description"] = " ".join(filter(None, [described.get("description"), over_cells]))
                _add_header(described, names, is_required=False)
            elif not path.startswith(_OWN) and _OF_CARRIER.fullmatch(path) is None:
                _add_header(described, names, is_required=True)
    return changed


def _add_partial(described: dict[str, Any]) -> None:
    if described["operationId"] in _WITHOUT_PARTIAL:
        return
    for status, response in described["responses"].items():
        content = response.get("content", {}).get("application/json") if status.startswith("2") else None
        if content is not None:
            content["schema"] = {"allOf": [content["schema"], _PARTIAL]}


def _widen_places(described: dict[str, Any]) -> None:
    """`after` and `Last-Event-ID`: in each log."""
    for parameter in described.get("parameters", []):
        for schema in (parameter["schema"], *parameter["schema"].get("anyOf", ())):
            if schema.get("pattern") == CURSOR_PATTERN:
                schema["pattern"] = PLACES_PATTERN
                described["x-rules"] = [*described.get("x-rules", []), _PLACES_RULE.format(parameter["name"])]


def _add_header(described: dict[str, Any], names: Sequence[str], *, is_required: bool) -> None:
    said = "The cell that answers." if is_required else "The one cell that answers; left out: all."
    header = {
        "name": CELL_HEADER,
        "in": "header",
        "required": is_required,
        "description": said,
        "schema": {"type": "string", "enum": list(names)},
    }
    described.setdefault("parameters", []).append(header)


def routes(cells: CellClient, spanning: Sequence[Route]) -> Sequence[Route]:
    """The document, and the page that shows it, which is the same in every cell."""
    said = {route.operation.operation_id: route.operation.description or "In all cells." for route in spanning}
    own = build_document([route for route in spanning if route.path == "/v1/cells"], version="")["paths"]

    async def openapi(request: web.Request) -> web.StreamResponse:
        for name in cells.directory.cells:
            found = await cells.ask(request, name, path="/openapi.json", method="GET")
            if found is not None and not found.is_refusal:
                document = document_over_cells(found.document, said, list(cells.directory.cells))
                return answer({**document, "paths": {**document["paths"], **own}})
        raise unavailable(cells.directory.cells)

    async def docs(request: web.Request) -> web.StreamResponse:
        return await cells.forward(request, cells.directory.default)

    described: Any = {"scope": None, "checked": False, "deadline_seconds": 30.0}
    return [
        raw_route("GET /openapi.json", openapi, operation_id="get_openapi", summary="This API as OpenAPI 3.1", **described),
        raw_route("GET /docs{path:.*}", docs, operation_id="open_docs", summary="This API as a page", **described),
    ]

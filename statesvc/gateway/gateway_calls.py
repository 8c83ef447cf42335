"""The other calls that span cells: the queue, a shipment by its id, the state of the cells; and the way of all others to their cell."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from aiohttp import hdrs, web

from statesvc.cells.directory import CELL_HEADER
from statesvc.cells.proxies import CARRIER_PATHS
from statesvc.gateway.cell_client import CellClient, RefusedError, one_or_all, unavailable
from statesvc.http.app import ANY_PATH
from statesvc.http.operation import Route, answer, operation, raw_route
from statesvc.http.problem import Code, Problem

_OF_CARRIER: Final = re.compile(rf"/v1/(?:{'|'.join(CARRIER_PATHS)})/([^/]+)(?:/.*)?")
_OUTBOX: Final = ("ready", "leased", "scheduled")
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_CELLS: Final = "/v1/cells"


@dataclass(frozen=True, slots=True)
class GatewayCalls:
    """The handlers."""

    cells: CellClient

    async def queue(self, request: web.Request) -> web.StreamResponse:
        """What waits in all cells: sums, and each cell's own."""
        gathered = await self.cells.gather(request, {name: {} for name in self.cells.directory.cells})
        gathered.require_any()
        return answer({**_sum(list(gathered.documents.values())), "cells": gathered.documents, "partial": gathered.partial})

    async def shipment(self, request: web.Request) -> web.StreamResponse:
        """One shipment by its id, whichever cell has it."""
        query = {name: request.query.getall(name) for name in request.query}
        gathered = await self.cells.gather(request, dict.fromkeys(self.cells.directory.cells, query))
        for name, found in gathered.answers.items():
            if not found.is_refusal:
                return answer({**found.document, "cell": name})
        refusals = list(gathered.answers.values())
        other = next((found for found in refusals if found.status != 404), None)
        if other is None and gathered.partial:
            # one that is away may have it: 404 would be a claim
            raise unavailable(gathered.partial)
        raise RefusedError(other or refusals[0])

    async def state(self, _request: web.Request) -> web.StreamResponse:
        """The cells of the directory. Takes no key and names no address."""
        directory = self.cells.directory
        cells = {name: {"carriers": directory.carriers_of(name)} for name in directory.cells}
        return answer({"epoch": directory.epoch, "default": directory.default, "cells": cells})

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """A call with a carrier in its path, or with a cell in its header, to the cell that it is about."""
        of_carrier = _OF_CARRIER.fullmatch(request.path)
        if of_carrier is not None:
            return await self.cells.forward(request, self.cells.directory.cell_of(of_carrier[1]))
        if request.headers.get(CELL_HEADER) not in self.cells.directory.cells:
            try:
                await self._require_call(request)
            except RefusedError as refused:
                return refused.response()
        return await self.cells.forward(request, self.cells.named(request))

    async def _require_call(self, request: web.Request) -> None:
        """That there is such a call at all, which any cell knows. Raises Problem and RefusedError."""
        allowed = "GET, HEAD"
        if request.path != _CELLS:
            directory = self.cells.directory
            asked = await self.cells.ask(request, directory.default, path=request.rel_url.raw_path, method=hdrs.METH_OPTIONS)
            if asked is None:
                return
            if asked.status == HTTPStatus.NOT_FOUND:
                raise RefusedError(asked)
            allowed = asked.headers.get(hdrs.ALLOW, request.method)
        if request.method not in allowed.split(", "):
            detail = f"{request.method} is not possible here, but {allowed}"
            raise Problem(Code.METHOD_NOT_ALLOWED, detail, headers={hdrs.ALLOW: allowed})


def _sum(depths: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What waits in several cells together. A carrier that moved may have messages in two."""
    carriers: dict[str, dict[str, Any]] = {}
    for cell in depths:
        for carrier_id, lane in cell["carriers"].items():
            carriers[carrier_id] = _joined(carriers[carrier_id], lane) if carrier_id in carriers else lane
    return {
        "carriers": dict(sorted(carriers.items())),
        "outbox": {state: sum(cell["outbox"][state] for cell in depths) for state in _OUTBOX},
        "dead_letters": sum(cell["dead_letters"] for cell in depths),
        "counts_capped": any(cell["counts_capped"] for cell in depths),
    }


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Counts add up; of the ages the oldest holds."""
    return {
        name: max((age for age in (one[name], other[name]) if age is not None), default=None)
        if name.startswith("oldest_")
        else one[name] + other[name]
        for name in one
    }


def spanning_routes(cells: CellClient) -> Sequence[Route]:
    """The calls over all cells."""
    calls = GatewayCalls(cells)
    over_cells: dict[str, Any] = {"scope": None, "checked": False, "deadline_seconds": 30.0}
    return [
        raw_route(
            "GET /v1/queue",
            one_or_all(cells, calls.queue),
            operation_id="get_queue",
            summary="How much is waiting",
            description="The sums of all cells, and each cell's own under `cells`.",
            **over_cells,
        ),
        raw_route(f"GET {_CELLS}", calls.state, operation_id="list_cells", summary="The cells of the directory", **over_cells),
        raw_route(
            "GET /v1/shipments/{shipment_id}",
            one_or_all(cells, calls.shipment),
            operation_id="get_shipment_by_id",
            summary="One shipment by its id",
            description="Of the `cell` that has it. 503 where none of those that answer has it, and one is away.",
            **over_cells,
        ),
    ]


def forwarding_routes(cells: CellClient) -> Sequence[Route]:
    """What no other route takes, to the cell that it is about."""
    calls = GatewayCalls(cells)
    anything: dict[str, Any] = {"scope": None, "checked": False, "deadline_seconds": None}
    return [
        Route(
            method,
            ANY_PATH,
            calls.forward,
            operation(operation_id=f"forward_{method.lower()}", summary="To the cell that the call is about", **anything),
        )
        for method in _METHODS
    ]

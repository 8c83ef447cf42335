"""`POST /v1/stream/tickets` over cells: a ticket of each cell in one, `north=...,south=...`, so that a browser may follow all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import orjson
from aiohttp import web

from statesvc.gateway.cell_client import CellClient, one_or_all
from statesvc.http.middleware import whole_body
from statesvc.http.operation import Operation, Route, answer, operation
from statesvc.http.problem import CREATED, Code, Problem, Violation

TICKET: Final = "ticket"
_STREAM: Final = "/v1/stream"
_PATH: Final = f"{_STREAM}/tickets"


def written_tickets(tickets: Mapping[str, str]) -> str:
    """One text of a ticket for each cell."""
    return ",".join(f"{name}={ticket}" for name, ticket in tickets.items())


def read_tickets(text: str) -> dict[str, str]:
    """What `written_tickets` wrote; whether they are good, the cells say. Raises the problem `invalid_request`."""
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name and equals and ticket for name, equals, ticket in parts):
        violation = Violation(f"/query/{TICKET}", f"send it as POST {_PATH} of the gateway gave it")
        raise Problem(Code.INVALID_REQUEST, "the parameters break the contract", violations=[violation])
    return {name: ticket for name, _, ticket in parts}


@dataclass(frozen=True, slots=True)
class TicketsOverCells:
    """The handler."""

    cells: CellClient

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Of the cells that answer; a stream that it opens names the others as away, until the page comes with its next ticket."""
        content = await whole_body(request)
        try:
            asked = orjson.loads(content) if content else {}
        except orjson.JSONDecodeError:
            raise Problem(Code.INVALID_REQUEST, "the body must be a JSON object") from None
        gathered = await self.cells.ask_all(request, "POST", _PATH, asked)
        gathered.require_any()
        documents = gathered.documents
        ticket = written_tickets({name: document[TICKET] for name, document in documents.items()})
        made = {
            TICKET: ticket,
            "path": f"{_STREAM}?{urlencode({TICKET: ticket})}",
            "expires_at": min(document["expires_at"] for document in documents.values()),
            "partial": gathered.partial,
        }
        return answer(made, status=CREATED)


def routes(cells: CellClient) -> Sequence[Route]:
    """The one call."""
    described: Operation[None] = operation(
        operation_id="create_stream_ticket",
        summary="A ticket for a browser's EventSource",
        description="For the streams of all cells.",
        scope=None,
        checked=False,
        deadline_seconds=30.0,
    )
    return [Route("POST", _PATH, one_or_all(cells, TicketsOverCells(cells).create), described)]

"""`POST /v1/events` over cells: each line goes to its carrier's cell; the answer has a verdict for each line under its own number."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from aiohttp import web

from events.carriers.canonical import lines
from statesvc.cells.directory import CellDirectory
from statesvc.gateway.cell_client import CellClient, Gathered, one_or_all, unavailable
from statesvc.http.middleware import whole_body
from statesvc.http.operation import Route, answer, raw_route

_LINES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl")


@dataclass(frozen=True, slots=True)
class EventSplit:
    """The handler."""

    cells: CellClient

    async def receive(self, request: web.Request) -> web.StreamResponse:
        """Answers once every cell has; 503 where one did not: what the others took is a duplicate when it is sent again."""
        body = await whole_body(request)
        directory = self.cells.directory
        if request.content_type not in _LINES:
            return await self.cells.forward(request, cell_of_event(body, directory))
        parts = split(lines(body), directory)
        if not parts:
            return await self.cells.forward(request, directory.default)
        asked = await asyncio.gather(*(self._send(request, name, part) for name, part in parts.items()))
        found = {name: each for name, each in zip(parts, asked, strict=True) if each is not None}
        gathered = Gathered(found, [name for name in parts if name not in found])
        gathered.require_any()
        if gathered.partial:
            raise unavailable(gathered.partial)
        return answer({"results": joined(parts, gathered.documents)})

    async def _send(self, request: web.Request, name: str, part: Sequence[tuple[int, bytes]]) -> Any:  # noqa: ANN401 - a cell's answer
        body = b"\n".join(line for _, line in part)
        return await self.cells.ask(request, name, path=request.rel_url.raw_path, body=body)


def cell_of_event(line: bytes, directory: CellDirectory) -> str:
    """Whose event it is; what cannot be read is the default cell's, which says what is wrong with it."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        return directory.default
    carrier_id = event.get("carrier_id") if isinstance(event, dict) else None
    return directory.cell_of(carrier_id) if isinstance(carrier_id, str) else directory.default


def split(numbered: Sequence[tuple[int, bytes]], directory: CellDirectory) -> dict[str, list[tuple[int, bytes]]]:
    """The numbered lines by cell, in their order."""
    parts: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for number, line in numbered:
        parts[cell_of_event(line, directory)].append((number, line))
    return dict(parts)


def joined(parts: Mapping[str, Sequence[tuple[int, bytes]]], documents: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All verdicts in the order of the lines. A cell counts the lines that it got from 1."""
    results = [{**result, "line": part[result["line"] - 1][0]} for name, part in parts.items() for result in documents[name]["results"]]
    return sorted(results, key=lambda result: result["line"])


def routes(cells: CellClient) -> Sequence[Route]:
    """The one call."""
    return [
        raw_route(
            "POST /v1/events",
            one_or_all(cells, EventSplit(cells).receive),
            operation_id="submit_events",
            summary="Append canonical events",
            description="Each line goes to its carrier's cell; 503 if one does not answer: send it all again.",
            scope=None,
            checked=False,
            deadline_seconds=30.0,
        )
    ]

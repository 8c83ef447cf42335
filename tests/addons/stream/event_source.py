"""A client of the stream that reads as the specification says: a field a line, an
event at each blank line.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp


@dataclass(frozen=True)
class Received:
    """One block of the stream. A comment or a lone `retry` has neither name nor data."""

    id: str | None
    name: str | None
    data: Any
    retry: int | None = None
    comment: str | None = None


def parse(block: bytes) -> Received:
    fields: dict[str, str] = {}
    for line in block.decode().split("\n"):
        name, _, value = line.partition(":")
        fields[name] = value.removeprefix(" ")
    return Received(
        id=fields.get("id"),
        name=fields.get("event"),
        data=json.loads(fields["data"]) if "data" in fields else None,
        retry=int(fields["retry"]) if "retry" in fields else None,
        comment=fields.get(""),
    )


class EventSource:
    """One connection.

    `blocks` ends where the server ends it. `began_at`: the id of the opening event.
    """

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer
        self.began_at: str | None = None
        self._rest = b""
        self._blocks = self._read()

    async def _read(self) -> AsyncIterator[Received]:
        async for chunk in self.answer.content.iter_any():
            *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
            for block in blocks:
                yield parse(block)

    def __aiter__(self) -> AsyncIterator[Received]:
        return self._blocks

    async def next(self, count: int = 1) -> list[Received]:
        """Return the next events, control frames left out."""
        found: list[Received] = []
        while len(found) < count:
            block = await anext(self._blocks)
            if block.name is not None:
                found.append(block)
        return found

    async def rest(self) -> list[Received]:
        """Return all events up to the end of the stream."""
        return [block async for block in self._blocks if block.name is not None]


@asynccontextmanager
async def event_source(
    client: Any, path: str = "/v1/stream", **options: Any
) -> AsyncIterator[EventSource]:
    """Open a stream; it is dropped at the end of the block, in the middle of
    whatever is on its way.
    """
    answer = await client.get(path, **options)
    try:
        assert answer.status == 200, await answer.text()
        source = EventSource(answer)
        opening = await anext(source._blocks)  # noqa: SLF001 - it comes before all others
        assert opening.retry is not None
        # readers such as eventsource-parser see the id of an event alone, and an event has data
        source.began_at = None if opening.data is None else opening.id
        yield source
    finally:
        answer.close()

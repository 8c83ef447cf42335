"""`GET /v1/queue`: how much waits."""

from collections.abc import Sequence
from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from statesvc.database.pool import Connections
from statesvc.http.operation import Route, operation
from statesvc.http.response import answer
from statesvc.inbox.queue_depths import COUNT_MAX, queue_json


class Lane(BaseModel):
    """The messages of one carrier."""

    model_config = ConfigDict(extra="forbid")

    ready: int
    leased: Annotated[int, Field(description="In a worker's hands.")]
    scheduled: Annotated[int, Field(description="Waits for its time: a retry's backoff.")]
    held: Annotated[int, Field(description="Would be ready, but the carrier is on hold.")]
    oldest_ready_seconds: Annotated[float | None, Field(description="How long the first one has been ready; null where none is.")]


class Outbox(BaseModel):
    """The notifications."""

    model_config = ConfigDict(extra="forbid")

    ready: int
    leased: int
    scheduled: int


class Queue(BaseModel):
    """What waits."""

    model_config = ConfigDict(extra="forbid")

    carriers: dict[str, Lane]
    outbox: Outbox
    dead_letters: Annotated[int, Field(description="Not settled by a human yet.")]
    counts_capped: Annotated[bool, Field(description=f"A count of {COUNT_MAX} means: at least so many.")]


def routes(pool: Connections) -> Sequence[Route]:
    """The call about the queues."""

    async def queue(_request: web.Request) -> web.StreamResponse:
        async with pool.connection() as connection:
            return answer(await queue_json(connection))

    return [
        Route(
            "GET",
            "/v1/queue",
            queue,
            operation(summary="How much waits", scope="ops", tag="queue", response=Queue),
        )
    ]

"""`GET /v1/workers`: who works here, and when each was last seen."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from aiohttp import web
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from statesvc.database.pool import Connections
from statesvc.http.operation import Route, operation
from statesvc.http.response import answer
from statesvc.operations.worker_list import RESCUES_MAX, SILENT_SECONDS, WorkerState, list_workers, rescues_last_hour


class WorkerShown(BaseModel):
    """One start of one process. A worker in another language shows only while it holds messages."""

    model_config = ConfigDict(extra="forbid")

    worker_id: str
    state: Annotated[WorkerState, Field(description=f"`silent`: no sign of life for {SILENT_SECONDS:g} s.")]
    role: str | None
    host: str | None
    pid: int | None
    version: str | None
    started_at: AwareDatetime | None
    stopping_at: AwareDatetime | None
    last_seen_at: AwareDatetime | None
    seen_seconds_ago: float | None
    leases: Annotated[int, Field(description="Messages and notifications in its hands.")]
    leases_lost: Annotated[int, Field(description="Messages that were taken over from it in the last 24 hours.")]


class Workers(BaseModel):
    """All of them, the latest seen first."""

    model_config = ConfigDict(extra="forbid")

    items: list[WorkerShown]
    next_cursor: None
    rescues_last_hour: Annotated[int, Field(description=f"Messages taken over because a lease had ended; {RESCUES_MAX} means at least.")]


def routes(pool: Connections) -> Sequence[Route]:
    """The call about workers."""

    async def workers(_request: web.Request) -> web.StreamResponse:
        async with pool.connection() as connection:
            found = await list_workers(connection)
            rescues = await rescues_last_hour(connection)
        items = [{**asdict(worker), "state": worker.state} for worker in found]
        return answer({"items": items, "next_cursor": None, "rescues_last_hour": rescues})

    return [
        Route(
            "GET",
            "/v1/workers",
            workers,
            operation(
                summary="Who works here",
                description="Each process says every 10 s that it lives; its row goes with a clean exit, or after a day of silence.",
                scope="ops",
                tag="queue",
                response=Workers,
            ),
        )
    ]

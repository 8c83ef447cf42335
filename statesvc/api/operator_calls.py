"""`/v1/queue`, `/v1/workers`, `/v1/allotments`, `/v1/notices`: what is waiting, who works on it, how it is shared, what went wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from aiohttp import web
from pydantic import Field
from typing_extensions import TypedDict

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from statesvc.api.parameters import Name
from statesvc.api.rollout_operations import WHY_LENGTH_MAX
from statesvc.database.pool import Connections
from statesvc.database.wakeups.channels import INBOX
from statesvc.database.wakeups.waker import Wakes
from statesvc.http.api_keys import caller_of
from statesvc.http.closed_model import ClosedModel
from statesvc.http.operation import WHY_TAKEN, PartialChange, Reply, Route, answer, body, parameters, route, why_of
from statesvc.http.paging import Page, PageParameters, decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem
from statesvc.inbox.allotment import IN_FLIGHT_MAX, WEIGHT_MAX, WEIGHT_MIN, Allotment, allot, allotment_of, list_allotments
from statesvc.inbox.queue_depths import QueueDepths, read_depths
from statesvc.operations.notices import NEWEST, StoredNotice, list_notices, mark_seen
from statesvc.operations.worker_list import RESCUES_MAX, WorkerStatus, list_workers, rescues_last_hour


class WorkersPage(TypedDict):
    """All of them, the latest seen first."""

    items: list[WorkerStatus]
    next_cursor: None
    rescues_last_hour: Annotated[int, Field(description=f"Messages taken over because a lease had ended; {RESCUES_MAX} means at least.")]


class AllotmentParameters(ClosedModel):
    """One carrier."""

    carrier_id: Annotated[Name, Field(description="A carrier_id.")]


class AllotmentChange(PartialChange):
    """What to set; a member that is left out stays as it is. The log stores `why`: no personal data there."""

    weight: Annotated[float, Field(ge=WEIGHT_MIN, le=WEIGHT_MAX, description="Its part of each claim, where the others have 1.")] = 1.0
    in_flight_max: Annotated[
        int | None, Field(ge=1, le=IN_FLIGHT_MAX, description="Messages leased by workers at a time; null: no bound.")
    ] = None
    why: Annotated[str, Field(max_length=WHY_LENGTH_MAX, pattern=r"^[^\x00]*$")] = ""


class NoticesParameters(PageParameters):
    """Notices, the newest first."""

    unseen: Annotated[bool, Field(description="Only those that nobody marked as seen.")] = False


class NoticeParameters(ClosedModel):
    """One notice."""

    notice_id: Annotated[int, Field(ge=1, le=NEWEST)]


@dataclass(frozen=True, slots=True)
class OperatorCalls:
    """The handlers."""

    pool: Connections
    waker: Wakes
    carriers: Mapping[str, Carrier]

    async def queue(self, _request: web.Request) -> Reply[QueueDepths]:
        """What is waiting."""
        async with self.pool.connection() as connection:
            return answer(await read_depths(connection))

    async def workers(self, _request: web.Request) -> Reply[WorkersPage]:
        """Each worker, and how often leases were taken over."""
        async with self.pool.connection() as connection:
            workers = await list_workers(connection)
            rescues = await rescues_last_hour(connection)
        return answer({"items": workers, "next_cursor": None, "rescues_last_hour": rescues})

    async def allotments(self, _request: web.Request) -> Reply[Page[Allotment]]:
        """Of every carrier that was ever given one; all others have weight 1 and no bound."""
        async with self.pool.connection() as connection:
            return answer(Page(await list_allotments(connection), None))

    async def change_allotment(self, request: web.Request) -> Reply[Allotment]:
        """Sets the members that the body has."""
        carrier_id = parameters(request, AllotmentParameters).carrier_id
        wanted = body(request, AllotmentChange)
        if carrier_id not in self.carriers:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
        named = wanted.model_fields_set
        async with self.pool.connection() as connection, connection.transaction():
            present = await allotment_of(connection, carrier_id)
            await allot(
                connection,
                carrier_id,
                weight=wanted.weight if "weight" in named else present.weight,
                in_flight_max=wanted.in_flight_max if "in_flight_max" in named else present.in_flight_max,
                why=wanted.why,
                actor=caller_of(request).actor,
            )
            changed = await allotment_of(connection, carrier_id)
        self.waker.wake(INBOX)
        return answer(changed)

    async def notices(self, request: web.Request) -> Reply[Page[StoredNotice]]:
        """A page, newest first."""
        asked = parameters(request, NoticesParameters)
        bound_to: dict[str, Any] = {"list": "notices", "unseen": asked.unseen}
        before = NEWEST
        if asked.cursor is not None:
            (before,) = decode_cursor(asked.cursor, bound_to, fields=1)
            if type(before) is not int or not 0 < before <= NEWEST:
                raise Problem(Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one")
        async with self.pool.connection() as connection:
            notices, more = await list_notices(connection, unseen_only=asked.unseen, before=before, limit=asked.limit)
        return answer(Page(notices, None if more is None else encode_cursor([more], bound_to)))

    async def notice_seen(self, request: web.Request) -> Reply[StoredNotice]:
        """Marks it as seen by the caller."""
        notice_id = parameters(request, NoticeParameters).notice_id
        async with self.pool.connection() as connection:
            notice = await mark_seen(connection, notice_id, actor=caller_of(request).actor, details=why_of(request))
        if notice is None:
            raise Problem(Code.NOT_FOUND, f"there is no notice {notice_id}")
        return answer(notice)


def routes(pool: Connections, waker: Wakes, *, carriers: Mapping[str, Carrier] = CARRIERS) -> Sequence[Route]:
    """The calls of operators about queues, workers and notices."""
    calls = OperatorCalls(pool, waker, carriers)
    return [
        route(
            "GET /v1/queue",
            calls.queue,
            operation_id="get_queue",
            summary="How much is waiting",
            scope="ops",
            tag="queue",
            response=QueueDepths,
        ),
        route(
            "GET /v1/workers",
            calls.workers,
            operation_id="list_workers",
            summary="List workers",
            description="Each process sends a heartbeat every 10 s, an ingress every 4 s; "
            "its row goes with a clean exit, or after a day without one. "
            "`silent`: three heartbeats are missing. A worker in another language shows only while it holds messages.",
            scope="ops",
            tag="queue",
            response=WorkersPage,
        ),
        route(
            "GET /v1/allotments",
            calls.allotments,
            operation_id="list_allotments",
            summary="List allotments",
            scope="ops",
            tag="queue",
            response=Page[Allotment],
        ),
        route(
            "PUT /v1/allotments/{carrier_id}",
            calls.change_allotment,
            operation_id="change_allotment",
            summary="Set a carrier's weight and bound",
            description=(
                "In effect at the next claim of every worker. What a carrier leaves of its share goes to the others; the bound counts "
                "messages that workers hold. Recorded as an operator action."
            ),
            scope="ops",
            tag="queue",
            parameters=AllotmentParameters,
            request=AllotmentChange,
            response=Allotment,
            problems=(Code.UNKNOWN_CARRIER,),
        ),
        route(
            "GET /v1/notices",
            calls.notices,
            operation_id="list_notices",
            summary="List notices",
            description="What the service did or saw by itself and an operator should know: subscribers that only fail, were disabled, "
            "or have recovered.",
            scope="ops",
            tag="notices",
            parameters=NoticesParameters,
            response=Page[StoredNotice],
            problems=(Code.INVALID_CURSOR,),
        ),
        route(
            "POST /v1/notices/{notice_id}/seen",
            calls.notice_seen,
            operation_id="mark_notice_seen",
            summary="Mark a notice as seen",
            description="Recorded as an operator action; who saw it first stays.",
            scope="ops",
            tag="notices",
            parameters=NoticeParameters,
            request_headers=WHY_TAKEN,
            response=StoredNotice,
            problems=(Code.NOT_FOUND,),
        ),
    ]

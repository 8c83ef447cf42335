"""`/v1/queue`, `/v1/workers`, `/v1/quotas`, `/v1/notices`: backlog, processes, quotas, notices."""

from typing import Annotated, Any, Final

from pydantic import Field
from typing_extensions import TypedDict

from statesvc.api import operating_words as words
from statesvc.api.operating_words import seen_ago, several_versions
from statesvc.api.operation_context import Context
from statesvc.api.parameters import CarrierParameters, Why
from statesvc.database.wakeups.wakeup import READY_NOW
from statesvc.health import notices, worker_list
from statesvc.health.notices import StoredNotice, mark_seen
from statesvc.health.worker_list import RESCUES_MAX, WorkerStatus, rescues_last_hour
from statesvc.http.call import Call
from statesvc.http.closed_model import ClosedModel
from statesvc.http.faces import Command, ConsolePage, FieldFace, Form
from statesvc.http.operation import WHY_TAKEN, PartialChange, operation
from statesvc.http.paging import NEWEST, Page, PageParameters, before_number, encode_cursor
from statesvc.http.problem import Code, Problem
from statesvc.http.views import Column, Details, Sentences, Table
from statesvc.queue import carrier_quota as quotas
from statesvc.queue.carrier_quota import (
    IN_FLIGHT_MAX,
    WEIGHT_MAX,
    WEIGHT_MIN,
    CarrierQuota,
    quota_of,
    set_quota,
)
from statesvc.queue.depths import QueueDepths, read_depths

_TROUBLE: Final = ("silent", "stopping", "foreign", "alive")
_QUEUE: Final = "queue"
_NOTICES: Final = "notices"


class WorkersPage(TypedDict):
    """All of them, the latest seen first."""

    items: list[WorkerStatus]
    next_cursor: None
    rescues_last_hour: Annotated[
        int,
        Field(
            description=(
                f"Messages taken over because a lease had ended; {RESCUES_MAX} means at least."
            )
        ),
    ]


class QuotaChange(PartialChange):
    """Quota to set; a member that is left out stays as it is.

    The log stores `why`: no personal data there.
    """

    weight: Annotated[
        float,
        Field(
            ge=WEIGHT_MIN,
            le=WEIGHT_MAX,
            description="Relative weight in each claim; the default is 1.",
        ),
        FieldFace(label="Weight", metavar="W"),
    ] = 1.0
    in_flight_max: Annotated[
        int | None,
        Field(
            ge=1,
            le=IN_FLIGHT_MAX,
            description="Messages leased by workers at a time; null: no bound.",
        ),
        FieldFace(
            label="Messages in hand at a time, at most",
            hint="Empty: no bound.",
            flag="--in-flight",
            metavar="N",
            null="none",
        ),
    ] = None
    why: Why = ""


class NoticesParameters(PageParameters):
    """Notices, the newest first."""

    unseen: Annotated[bool, Field(description="Only those that nobody marked as seen.")] = False


class NoticeParameters(ClosedModel):
    """A notice."""

    notice_id: Annotated[int, Field(ge=1, le=NEWEST)]


@operation(
    "GET /v1/queue",
    scope="ops",
    tag=_QUEUE,
    view=(
        Table(
            Column("name", "Carrier", link="/console/carriers/{name}"),
            "ready",
            Column(words.oldest_ready, "Oldest"),
            Column("leased", "In work"),
            Column("scheduled", "Later"),
            "held",
            Column(words.oldest_held, "Held since"),
            of="carriers",
            title="Messages",
            empty="No message waits.",
        ),
        Sentences(words.notifications, words.waiting_dead_letters, words.capped),
    ),
    commands=(Command(name="queue"),),
    pages=(ConsolePage(path="/console/queue", title="Queue", menu="Queue", is_live=True),),
)
async def get_queue(context: Context, _call: Call[None, None]) -> QueueDepths:
    """Show how much is waiting."""
    async with context.pool.connection() as connection:
        return await read_depths(connection, count_max=context.limits.counted)


@operation(
    "GET /v1/workers",
    scope="ops",
    tag=_QUEUE,
    view=(
        Sentences(several_versions),
        Table(
            "role",
            "state",
            Column(seen_ago, "Seen"),
            "host",
            Column("pid", "PID"),
            Column("started_at", "Started"),
            Column("leases", "Holds"),
            Column("leases_lost", "Lost in a day"),
            Column("version", wide=True),
            Column("worker_id", "Process"),
            empty="No process has sent a heartbeat within a day.",
        ),
        Sentences(
            "Messages taken over within an hour from a worker whose lease had ended:"
            " {rescues_last_hour}."
        ),
    ),
    commands=(Command(name="workers", renamed={"items": "workers"}),),
    pages=(
        ConsolePage(
            path="/console/workers",
            title="Workers",
            menu="Workers",
            group="Operators",
            runbook=("RoleDown",),
            is_live=True,
        ),
    ),
)
async def list_workers(context: Context, _call: Call[None, None]) -> WorkersPage:
    """List workers.

    Those in trouble first.

    Each process sends a heartbeat every 10 s, an ingress every 4 s; its row is deleted at a
    clean exit, or after a day of silence. `silent`: three heartbeats are missing. A worker in
    another language shows only while it holds messages.
    """
    async with context.pool.connection() as connection:
        workers = sorted(
            await worker_list.list_workers(connection),
            key=lambda worker: (_TROUBLE.index(worker.state), worker.role or "", worker.worker_id),
        )
        rescues = await rescues_last_hour(connection)
    return {"items": workers, "next_cursor": None, "rescues_last_hour": rescues}


@operation("GET /v1/quotas", scope="ops", tag=_QUEUE)
async def list_quotas(context: Context, _call: Call[None, None]) -> Page[CarrierQuota]:
    """List quotas."""
    async with context.pool.connection() as connection:
        return Page(await quotas.list_quotas(connection), None)


@operation(
    "GET /v1/quotas/{carrier_id}",
    scope="ops",
    tag=_QUEUE,
    problems=(Code.UNKNOWN_CARRIER,),
    view=Details("weight", Column("in_flight_max", "At most in flight"), title="Quota"),
)
async def get_quota(context: Context, call: Call[CarrierParameters, None]) -> CarrierQuota:
    """Show a carrier's quota."""
    carrier_id = context.carrier(call.parameters.carrier_id).carrier_id
    async with context.pool.connection() as connection:
        return await quota_of(connection, carrier_id)


@operation(
    "PUT /v1/quotas/{carrier_id}",
    scope="ops",
    tag=_QUEUE,
    problems=(Code.UNKNOWN_CARRIER,),
    view=Sentences(words.quota),
    commands=(
        Command(
            name="carriers quota",
            summary="show or set a carrier's weight and bound in each claim",
            fields=("weight", "in_flight_max", "why"),
            required=("why",),
        ),
    ),
    forms=(
        Form(
            path="/console/carriers/{carrier_id}/quota",
            title="Quota of {carrier_id}",
            button="Set it",
            fields=("weight", "in_flight_max"),
            preview="get_quota",
            is_filled=True,
            then="/console/carriers/{carrier_id}",
            section="/console/carriers",
        ),
    ),
)
async def change_quota(
    context: Context, call: Call[CarrierParameters, QuotaChange]
) -> CarrierQuota:
    """Set a carrier's weight and bound.

    In effect at the next claim of every worker. The unused part of a carrier's share goes to
    the others; the bound counts messages that workers hold. Recorded as an operator action.
    """
    carrier_id = context.carrier(call.parameters.carrier_id).carrier_id
    wanted, named = call.body, call.body.model_fields_set
    async with context.pool.connection() as connection, connection.transaction():
        present = await quota_of(connection, carrier_id)
        await set_quota(
            connection,
            carrier_id,
            weight=wanted.weight if "weight" in named else present.weight,
            in_flight_max=(
                wanted.in_flight_max if "in_flight_max" in named else present.in_flight_max
            ),
            why=wanted.why,
            actor=call.caller.actor,
        )
        changed = await quota_of(connection, carrier_id)
    for channel in READY_NOW:
        context.waker.wake(channel)
    return changed


@operation(
    "GET /v1/notices",
    scope="ops",
    tag=_NOTICES,
    problems=(Code.INVALID_CURSOR,),
    view=Table(
        Column("notice_id", "Notice"),
        Column("created_at", "Noticed"),
        "kind",
        "target",
        "details",
        Column("seen_by", "Seen by"),
        empty="There are no notices.",
    ),
    commands=(Command(name="notices list"),),
    pages=(
        ConsolePage(
            path="/console/notices",
            title="Notices",
            menu="Notices",
            group="Operators",
            filter=("unseen",),
            preset={"unseen": "true"},
            row_acts=("/console/notices/{notice_id}/seen",),
        ),
    ),
)
async def list_notices(context: Context, call: Call[NoticesParameters, None]) -> Page[StoredNotice]:
    """List notices.

    Events that the service noticed by itself and an operator should know: subscribers that only
    fail, were disabled, or have recovered.
    """
    wanted = call.parameters
    bound_to: dict[str, Any] = {"list": "notices", "unseen": wanted.unseen}
    before = before_number(wanted.cursor, bound_to)
    async with context.pool.connection() as connection:
        items, more = await notices.list_notices(
            connection, unseen_only=wanted.unseen, before=before, limit=wanted.limit
        )
    return Page(items, None if more is None else encode_cursor([more], bound_to))


@operation(
    "POST /v1/notices/{notice_id}/seen",
    scope="ops",
    tag=_NOTICES,
    request_headers=WHY_TAKEN,
    problems=(Code.NOT_FOUND,),
    view=Sentences("Notice {notice_id} is marked as seen."),
    commands=(Command(name="notices seen"),),
    forms=(
        Form(
            path="/console/notices/{notice_id}/seen",
            title="Notice {notice_id}",
            button="Mark as seen",
            would=Sentences("It leaves the list of notices that nobody has seen."),
            then="/console/notices",
        ),
    ),
)
async def mark_notice_seen(context: Context, call: Call[NoticeParameters, None]) -> StoredNotice:
    """Mark a notice as seen.

    Recorded as an operator action; the first viewer is kept.
    """
    notice_id = call.parameters.notice_id
    async with context.pool.connection() as connection:
        notice = await mark_seen(connection, notice_id, actor=call.caller.actor, details=call.why)
    if notice is None:
        raise Problem(Code.NOT_FOUND, f"there is no notice {notice_id}")
    return notice


OPERATIONS: Final = (
    get_queue,
    list_workers,
    list_quotas,
    get_quota,
    change_quota,
    list_notices,
    mark_notice_seen,
)

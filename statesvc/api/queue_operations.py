"""`/v1/queue`, `/v1/workers`, `/v1/quotas`, `/v1/notices`: backlog, processes, quotas, notices."""

from typing import Annotated, Any, Final

from pydantic import Field
from typing_extensions import TypedDict

from statesvc.api import kit
from statesvc.api import operating_words as words
from statesvc.api.operating_words import seen_ago, several_versions
from statesvc.database.wakeups.wakeup import READY_NOW
from statesvc.health import notices, worker_list
from statesvc.health.notices import StoredNotice, mark_seen
from statesvc.health.worker_list import RESCUES_MAX, WorkerStatus, rescues_last_hour
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


class QuotaChange(kit.PartialChange):
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
        kit.FieldFace(label="Weight", metavar="W"),
    ] = 1.0
    in_flight_max: Annotated[
        int | None,
        Field(
            ge=1,
            le=IN_FLIGHT_MAX,
            description="Messages leased by workers at a time; null: no bound.",
        ),
        kit.FieldFace(
            label="Messages in hand at a time, at most",
            hint="Empty: no bound.",
            flag="--in-flight",
            metavar="N",
            null="none",
        ),
    ] = None
    why: kit.Why = ""


class NoticesParameters(kit.PageParameters):
    """Notices, the newest first."""

    unseen: Annotated[bool, Field(description="Only those that nobody marked as seen.")] = False


class NoticeParameters(kit.ClosedModel):
    """A notice."""

    notice_id: Annotated[int, Field(ge=1, le=kit.NEWEST)]


@kit.operation(
    "GET /v1/queue",
    scope="ops",
    tag=_QUEUE,
    view=(
        kit.Table(
            kit.Column("name", "Carrier", link="/console/carriers/{name}"),
            "ready",
            kit.Column(words.oldest_ready, "Oldest"),
            kit.Column("leased", "In work"),
            kit.Column("scheduled", "Later"),
            "held",
            kit.Column(words.oldest_held, "Held since"),
            of="carriers",
            title="Messages",
            empty="No message waits.",
        ),
        kit.Sentences(words.notifications, words.waiting_dead_letters, words.capped),
    ),
    commands=(kit.Command(name="queue"),),
    pages=(kit.ConsolePage(path="/console/queue", title="Queue", menu="Queue", is_live=True),),
)
async def get_queue(context: kit.Context, _call: kit.Call[None, None]) -> QueueDepths:
    """Show how much is waiting."""
    async with context.pool.connection() as connection:
        return await read_depths(connection, count_max=context.limits.counted)


@kit.operation(
    "GET /v1/workers",
    scope="ops",
    tag=_QUEUE,
    view=(
        kit.Sentences(several_versions),
        kit.Table(
            "role",
            "state",
            kit.Column(seen_ago, "Seen"),
            "host",
            kit.Column("pid", "PID"),
            kit.Column("started_at", "Started"),
            kit.Column("leases", "Holds"),
            kit.Column("leases_lost", "Lost in a day"),
            kit.Column("version", wide=True),
            kit.Column("worker_id", "Process"),
            empty="No process has sent a heartbeat within a day.",
        ),
        kit.Sentences(
            "Messages taken over within an hour from a worker whose lease had ended:"
            " {rescues_last_hour}."
        ),
    ),
    commands=(kit.Command(name="workers", renamed={"items": "workers"}),),
    pages=(
        kit.ConsolePage(
            path="/console/workers",
            title="Workers",
            menu="Workers",
            group="Operators",
            runbook=("RoleDown",),
            is_live=True,
        ),
    ),
)
async def list_workers(context: kit.Context, _call: kit.Call[None, None]) -> WorkersPage:
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


@kit.operation("GET /v1/quotas", scope="ops", tag=_QUEUE)
async def list_quotas(context: kit.Context, _call: kit.Call[None, None]) -> kit.Page[CarrierQuota]:
    """List quotas."""
    async with context.pool.connection() as connection:
        return kit.Page(await quotas.list_quotas(connection), None)


@kit.operation(
    "GET /v1/quotas/{carrier_id}",
    scope="ops",
    tag=_QUEUE,
    problems=(kit.Code.UNKNOWN_CARRIER,),
    view=kit.Details("weight", kit.Column("in_flight_max", "At most in flight"), title="Quota"),
)
async def get_quota(
    context: kit.Context, call: kit.Call[kit.CarrierParameters, None]
) -> CarrierQuota:
    """Show a carrier's quota."""
    carrier_id = context.carrier(call.parameters.carrier_id).carrier_id
    async with context.pool.connection() as connection:
        return await quota_of(connection, carrier_id)


@kit.operation(
    "PUT /v1/quotas/{carrier_id}",
    scope="ops",
    tag=_QUEUE,
    problems=(kit.Code.UNKNOWN_CARRIER,),
    view=kit.Sentences(words.quota),
    commands=(
        kit.Command(
            name="carriers quota",
            summary="show or set a carrier's weight and bound in each claim",
            fields=("weight", "in_flight_max", "why"),
            required=("why",),
        ),
    ),
    forms=(
        kit.Form(
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
    context: kit.Context, call: kit.Call[kit.CarrierParameters, QuotaChange]
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


@kit.operation(
    "GET /v1/notices",
    scope="ops",
    tag=_NOTICES,
    problems=(kit.Code.INVALID_CURSOR,),
    view=kit.Table(
        kit.Column("notice_id", "Notice"),
        kit.Column("created_at", "Noticed"),
        "kind",
        "target",
        "details",
        kit.Column("seen_by", "Seen by"),
        empty="There are no notices.",
    ),
    commands=(kit.Command(name="notices list"),),
    pages=(
        kit.ConsolePage(
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
async def list_notices(
    context: kit.Context, call: kit.Call[NoticesParameters, None]
) -> kit.Page[StoredNotice]:
    """List notices.

    Events that the service noticed by itself and an operator should know: subscribers that only
    fail, were disabled, or have recovered.
    """
    wanted = call.parameters
    bound_to: dict[str, Any] = {"list": "notices", "unseen": wanted.unseen}
    before = kit.before_number(wanted.cursor, bound_to)
    async with context.pool.connection() as connection:
        items, more = await notices.list_notices(
            connection, unseen_only=wanted.unseen, before=before, limit=wanted.limit
        )
    return kit.Page(items, None if more is None else kit.encode_cursor([more], bound_to))


@kit.operation(
    "POST /v1/notices/{notice_id}/seen",
    scope="ops",
    tag=_NOTICES,
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND,),
    view=kit.Sentences("Notice {notice_id} is marked as seen."),
    commands=(kit.Command(name="notices seen"),),
    forms=(
        kit.Form(
            path="/console/notices/{notice_id}/seen",
            title="Notice {notice_id}",
            button="Mark as seen",
            would=kit.Sentences("It leaves the list of notices that nobody has seen."),
            then="/console/notices",
        ),
    ),
)
async def mark_notice_seen(
    context: kit.Context, call: kit.Call[NoticeParameters, None]
) -> StoredNotice:
    """Mark a notice as seen.

    Recorded as an operator action; the first viewer is kept.
    """
    notice_id = call.parameters.notice_id
    async with context.pool.connection() as connection:
        notice = await mark_seen(connection, notice_id, actor=call.caller.actor, details=call.why)
    if notice is None:
        raise kit.Problem(kit.Code.NOT_FOUND, f"there is no notice {notice_id}")
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
